package redisstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/redistest"
	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/redisstore"
)

// TestOperatorsMistakes pause the outbox with a cause and a way out, lose nothing, and are over
// when the server is mended.
func TestOperatorsMistakes(t *testing.T) {
	foreign := statesman.NewLineage()
	cases := []struct {
		name   string
		server redistest.Options
		url    func(s *redistest.Server) string // nil = the right one
		spoil  [][]any
		mend   [][]any
		cause  string // part of it
		hint   string // part of it
	}{
		{name: "no password", server: redistest.Options{Password: "secret"},
			url:  func(s *redistest.Server) string { return "redis://" + s.Addr },
			mend: [][]any{{"CONFIG", "SET", "requirepass", ""}}, cause: "NOAUTH", hint: "password"},
		{name: "wrong password", server: redistest.Options{Password: "secret"},
			url:  func(s *redistest.Server) string { return "redis://:guess@" + s.Addr },
			mend: [][]any{{"CONFIG", "SET", "requirepass", "guess"}}, cause: "WRONGPASS", hint: "password"},
		{name: "no permission", url: func(s *redistest.Server) string { return "redis://agent:pw@" + s.Addr },
			spoil: [][]any{{"ACL", "SETUSER", "agent", "on", ">pw", "~*", "+ping"}},
			mend:  [][]any{{"ACL", "SETUSER", "agent", "+@all"}}, cause: "NOPERM", hint: "XADD"},
		{name: "no permission inside the script", url: func(s *redistest.Server) string { return "redis://agent:pw@" + s.Addr },
			spoil: [][]any{{"ACL", "SETUSER", "agent", "on", ">pw", "~*", "+@all", "-xadd"}},
			mend:  [][]any{{"ACL", "SETUSER", "agent", "+@all"}}, cause: "can't run this command", hint: "XADD"},
		{name: "stream of another type", spoil: [][]any{{"SET", stream, "x"}},
			mend: [][]any{{"DEL", stream}}, cause: "WRONGTYPE", hint: "another stream"},
		{name: "mark of another type", spoil: [][]any{{"SET", "{" + stream + "}:mark", "x"}},
			mend: [][]any{{"DEL", "{" + stream + "}:mark"}}, cause: "WRONGTYPE", hint: "another stream"},
		{name: "stream of somebody else", spoil: [][]any{{"XADD", stream, "5-0", "a", "b"}},
			mend: [][]any{{"DEL", stream}}, cause: "no mark", hint: "redis-cli DEL"},
		{name: "another writer", spoil: [][]any{
			{"XADD", stream, "9-0", "a", "b"},
			{"HSET", "{" + stream + "}:mark", "lineage", foreign.String(), "position", "5"}},
			mend: [][]any{{"DEL", stream, "{" + stream + "}:mark"}}, cause: "somebody else", hint: "redis-cli DEL"},
		{name: "another store", spoil: [][]any{
			{"XADD", stream, "5-0", "a", "b"},
			{"HSET", "{" + stream + "}:mark", "lineage", foreign.String(), "position", "5"}},
			mend: [][]any{{"DEL", stream, "{" + stream + "}:mark"}}, cause: "another store", hint: "redis-cli DEL"},
		{name: "no mark in its key", spoil: [][]any{
			{"XADD", stream, "5-0", "a", "b"},
			{"HSET", "{" + stream + "}:mark", "lineage", "who knows", "position", "5"}},
			mend: [][]any{{"DEL", stream, "{" + stream + "}:mark"}}, cause: "holds no mark", hint: "redis-cli DEL"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.server.Volatile = true
			server := redistest.StartServer(t, &c.server)
			admin := server.Client()
			for _, cmd := range c.spoil {
				redistest.Do(t, admin, cmd...)
			}
			url := server.URL()
			if c.url != nil {
				url = c.url(server)
			}
			store := newStore(t, statesman.Lineage{})
			fill(t, store, 30)
			d := newDispatcher(t, store, openSink(t, redisstore.StreamOptions{URL: url}), &outbox.MemoryCursors{}, outbox.Options{})
			err := cycle(t, d)
			if !errors.Is(err, outbox.ErrOperator) {
				t.Fatalf("got %v, want an error that matches ErrOperator", err)
			}
			s := d.Status(t.Context())
			if s.State != outbox.StatePaused || !strings.Contains(s.Cause, c.cause) || !strings.Contains(s.Cause, server.Addr) && c.cause != "another store" {
				t.Errorf("state %s, cause %q, want paused, naming %q and the server", s.State, s.Cause, c.cause)
			}
			if !strings.Contains(s.Hint, c.hint) {
				t.Errorf("hint %q, want it to name %q", s.Hint, c.hint)
			}
			if s.Cursor.Position != 0 || s.Delivered != 0 {
				t.Errorf("cursor at %d, %d delivered, want 0 and 0", s.Cursor.Position, s.Delivered)
			}
			for _, cmd := range c.mend {
				redistest.Do(t, admin, cmd...)
			}
			d.Start() // probes by itself
			waitShipped(t, d, 30)
			if s := d.Status(t.Context()); s.State != outbox.StateRunning || s.Delivered != 30 {
				t.Errorf("after mending: state %s, %d delivered, want running and 30", s.State, s.Delivered)
			}
		})
	}
}
