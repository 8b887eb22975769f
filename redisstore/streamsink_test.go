package redisstore_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/redistest"
	"github.com/statesman-dev/statesman/outbox"
	"github.com/statesman-dev/statesman/redisstore"
)

// batchOf reads a store's whole feed into a batch.
func batchOf(t *testing.T, s statesman.Store) *outbox.Batch {
	t.Helper()
	b := &outbox.Batch{Store: s.Name(), Attempt: 1}
	for c, err := range statesman.BorrowChanges(t.Context(), s, statesman.Cursor{}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		b.Lineage = c.Cursor.Lineage
		b.Records = append(b.Records, slices.Clone(c.Record))
	}
	return b
}

func deliver(t *testing.T, s *redisstore.StreamSink, b *outbox.Batch) outbox.Result {
	t.Helper()
	res, err := s.Deliver(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestEntryAndMark(t *testing.T) {
	server := redistest.StartServer(t, &redistest.Options{Volatile: true})
	client := server.Client()
	store := newStore(t, statesman.Lineage{})
	payload := []byte("raw\x00\xff\r\n$5")
	for range 3 {
		c := statesman.SetCommit("blob", "application/octet-stream", payload)
		c.Metadata = map[string]string{"who": "ünder"}
		if _, err := store.Append(t.Context(), statesman.MustAddress("app", "a/b", "Tenant-7"), statesman.Any(), c); err != nil {
			t.Fatal(err)
		}
	}
	b := batchOf(t, store)
	sink := openSink(t, redisstore.StreamOptions{URL: server.URL()})
	deliver(t, sink, b)
	entries, err := client.XRange(t.Context(), stream, "-", "+").Result()
	if err != nil || len(entries) != 3 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	v := entries[1].Values
	for field, want := range map[string]any{"payload": string(payload), "messageId": "desk-1/app::a/b::Tenant-7#2", "globalPosition": "2",
		"serializerId": "raw/v1", "metadata": `{"who":"ünder"}`, "lineage": b.Lineage.String(), "operation": "set"} {
		if v[field] != want {
			t.Errorf("field %s is %q, want %q", field, v[field], want)
		}
	}
	hash := ""
	for i := range 3 {
		sum := sha1.Sum(fmt.Appendf(nil, "%sdesk-1/app::a/b::Tenant-7#%d", hash, i+1))
		hash = hex.EncodeToString(sum[:])
	}
	m, ok, err := sink.Mark(t.Context())
	if err != nil || !ok || m.Lineage != b.Lineage || m.Position != 3 || m.MessageID != "desk-1/app::a/b::Tenant-7#3" || m.Hash != hash {
		t.Errorf("mark %+v, %v, %v, want position 3 and hash %s", m, ok, err, hash)
	}

	// Again: all refused, nothing changed. The sink expects its own mark, and finds it.
	if res := deliver(t, sink, b); res.Deduplicated != 3 || res.Verdicts != nil {
		t.Errorf("delivered again: %+v, want 3 repeats", res)
	}
	if again, _, err := sink.Mark(t.Context()); err != nil || again != m {
		t.Errorf("mark %+v, %v after repeats, want %+v", again, err, m)
	}
}

// TestLargePositions: positions beyond 2^53 stay exact; a Lua number would not.
func TestLargePositions(t *testing.T) {
	server := redistest.StartServer(t, &redistest.Options{Volatile: true})
	store := newStore(t, statesman.Lineage{})
	const far = int64(1)<<62 + 1
	for i := range int64(3) {
		r := statesman.SetCommit("doc", "text/plain", nil).Record(statesman.MustAddress("app", "a", ""), i+1, far+i, time.Now())
		if err := store.Import(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	sink := openSink(t, redisstore.StreamOptions{URL: server.URL()})
	b := batchOf(t, store)
	two := *b
	two.Records = b.Records[:2]
	deliver(t, sink, &two)
	if res := deliver(t, sink, b); res.Deduplicated != 2 {
		t.Errorf("%d repeats, want 2", res.Deduplicated)
	}
	if m, _, err := sink.Mark(t.Context()); err != nil || m.Position != far+2 {
		t.Errorf("mark at %d, %v, want %d", m.Position, err, far+2)
	}
}

func TestServerAwayIsAStateWithAnAddress(t *testing.T) {
	server := redistest.StartServer(t, &redistest.Options{Stopped: true, Volatile: true})
	store := newStore(t, statesman.Lineage{})
	fill(t, store, 2)
	sink := openSink(t, redisstore.StreamOptions{URL: server.URL()})
	_, err := sink.Deliver(t.Context(), batchOf(t, store))
	if err == nil || errors.Is(err, outbox.ErrOperator) || !strings.Contains(err.Error(), server.Addr) {
		t.Errorf("deliver: %v, want a passing error that names %s", err, server.Addr)
	}
	if _, _, err := sink.Mark(t.Context()); err == nil || errors.Is(err, outbox.ErrOperator) || !strings.Contains(err.Error(), server.Addr) {
		t.Errorf("mark: %v, want a passing error that names %s", err, server.Addr)
	}
	server.Start()
	deliver(t, sink, batchOf(t, store)) // by hash first, then by text
	redistest.Do(t, server.Client(), "SCRIPT", "FLUSH")
	if res := deliver(t, sink, batchOf(t, store)); res.Deduplicated != 2 {
		t.Errorf("after the server forgot the script: %+v, want 2 repeats", res)
	}
	if err := sink.Close(); err != nil {
		t.Error(err)
	}
	if err := sink.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
	if _, err := sink.Deliver(t.Context(), batchOf(t, store)); err == nil {
		t.Error("a closed sink delivered")
	}
}

// TestFullServer: an OOM is waited for and nothing is half done.
func TestFullServer(t *testing.T) {
	server := redistest.StartServer(t, &redistest.Options{Volatile: true})
	client := server.Client()
	store := newStore(t, statesman.Lineage{})
	fill(t, store, 5)
	sink := openSink(t, redisstore.StreamOptions{URL: server.URL()})
	redistest.Do(t, client, "CONFIG", "SET", "maxmemory", "1")
	if _, err := sink.Deliver(t.Context(), batchOf(t, store)); err == nil || errors.Is(err, outbox.ErrOperator) || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("got %v, want OOM to retry", err)
	}
	redistest.Do(t, client, "CONFIG", "SET", "maxmemory", "0")
	if res := deliver(t, sink, batchOf(t, store)); res.Deduplicated != 0 {
		t.Errorf("%d repeats, want none", res.Deduplicated)
	}
	checkStream(t, client, 5)
}

// TestStalledServer: no answer within the timeout is an unknown outcome, and the next delivery
// finds out.
func TestStalledServer(t *testing.T) {
	server := redistest.StartServer(t, &redistest.Options{Volatile: true})
	client := server.Client()
	store := newStore(t, statesman.Lineage{})
	fill(t, store, 5)
	sink := openSink(t, redisstore.StreamOptions{URL: server.URL(), Timeout: 200 * time.Millisecond})
	redistest.Do(t, client, "CLIENT", "PAUSE", "60000", "WRITE")
	began := time.Now()
	_, err := sink.Deliver(t.Context(), batchOf(t, store))
	if err == nil || errors.Is(err, outbox.ErrOperator) || time.Since(began) > 10*time.Second {
		t.Errorf("got %v after %v, want a passing error after about 200ms", err, time.Since(began))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := sink.Deliver(ctx, batchOf(t, store)); err == nil {
		t.Error("delivered while the server was paused")
	}
	redistest.Do(t, client, "CLIENT", "UNPAUSE")
	deliver(t, sink, batchOf(t, store))
	checkStream(t, client, 5)
}

func TestRecordThatCannotBeReadIsRejectedAlone(t *testing.T) {
	server := redistest.StartServer(t, &redistest.Options{Volatile: true})
	store := newStore(t, statesman.Lineage{})
	for range 3 {
		c := statesman.SetCommit("doc", "text/plain", nil)
		c.Metadata = map[string]string{"key": "value"}
		if _, err := store.Append(t.Context(), statesman.MustAddress("app", "a", ""), statesman.Any(), c); err != nil {
			t.Fatal(err)
		}
	}
	b := batchOf(t, store)
	b.Records[1][bytes.Index(b.Records[1], []byte{1, 0, 0, 0, 3, 0, 0, 0, 'k', 'e', 'y'})] = 9
	sink := openSink(t, redisstore.StreamOptions{URL: server.URL()})
	for range 2 {
		res := deliver(t, sink, b)
		if v := res.Verdicts; len(v) != 3 || v[0].Code != outbox.Accepted || v[1].Code != outbox.Rejected || v[2].Code != outbox.Retry {
			t.Errorf("verdicts %+v, want accepted, rejected, retry", v)
		}
	}
	checkStream(t, server.Client(), 1)
	b.Records = b.Records[1:]
	if v := deliver(t, sink, b).Verdicts; len(v) != 2 || v[0].Code != outbox.Rejected {
		t.Errorf("verdicts %+v, want the first rejected", v)
	}
}

// TestHashTagInTheName: stream and mark live in one slot, checked by a server in cluster mode.
func TestHashTagInTheName(t *testing.T) {
	server := redistest.StartServer(t, &redistest.Options{Volatile: true, Args: []string{"--cluster-enabled", "yes", "--cluster-require-full-coverage", "no"}})
	client := server.Client()
	for _, name := range []string{"changes", "{app}:changes", "a b:c"} {
		mark := "{" + name + "}:mark"
		if strings.Contains(name, "{") {
			mark = name + ":mark"
		}
		a, b := client.ClusterKeySlot(t.Context(), name), client.ClusterKeySlot(t.Context(), mark)
		if a.Err() != nil || b.Err() != nil || a.Val() != b.Val() {
			t.Errorf("%q is in slot %d, its mark in %d (%v, %v)", name, a.Val(), b.Val(), a.Err(), b.Err())
		}
	}
}

func TestParseStreamOptions(t *testing.T) {
	o, err := redisstore.ParseStreamOptions(map[string]any{"url": "redis://user:pw@host:6380/3", "stream": "s", "max_length": uint64(5), "timeout": "2s", "dial_timeout": "1s"})
	want := redisstore.StreamOptions{URL: "redis://user:pw@host:6380/3", Stream: "s", MaxLength: 5, Timeout: 2 * time.Second, DialTimeout: time.Second}
	if err != nil || o != want {
		t.Errorf("got %+v, %v, want %+v", o, err, want)
	}
	cases := []struct {
		with map[string]any
		want []string
	}{
		{nil, []string{"url: missing", "stream: no name"}},
		{map[string]any{"url": "redis://h", "strem": "s", "sream": 1}, []string{"unknown: sream, strem; known are url, stream", "stream: no name"}},
		{map[string]any{"url": 5, "stream": []any{}, "max_length": "many", "timeout": 3, "dial_timeout": "soon"},
			[]string{"url: want text, not 5", "stream: want text, not a list", "max_length: want a whole number, not text",
				`timeout: want a duration such as "5s", not 3`, `dial_timeout: want a duration such as "5s", not "soon"`}},
		{map[string]any{"url": "http://u:hunter2@h", "stream": "a{b", "timeout": "-1s"},
			[]string{"invalid URL scheme: http", "braces", "timeout: want more than 0"}},
		{map[string]any{"url": "redis://u:hunter2@h\n", "stream": "s", "max_length": 1.5}, []string{"not a url", "max_length: want a whole number, not 1.5"}},
		{map[string]any{"url": "redis://u:hunter2@h/x", "stream": "s", "max_length": -4}, []string{"invalid database number", "max length -4"}},
	}
	for _, c := range cases {
		_, err := redisstore.ParseStreamOptions(c.with)
		if !errors.Is(err, statesman.ErrInvalid) {
			t.Errorf("%v: %v, want ErrInvalid", c.with, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %q does not say %q", c.with, err, want)
			}
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: the error tells the password", c.with)
		}
	}
	if _, err := redisstore.OpenStreamSink(redisstore.StreamOptions{Stream: "s"}); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("open without url: %v, want ErrInvalid", err)
	}
}

// TestOtherWriterIsSeenByTheNextBatch: not only when the mark is read.
func TestOtherWriterIsSeenByTheNextBatch(t *testing.T) {
	server := redistest.StartServer(t, &redistest.Options{Volatile: true})
	store := newStore(t, statesman.Lineage{})
	fill(t, store, 5)
	sink := openSink(t, redisstore.StreamOptions{URL: server.URL()})
	b := batchOf(t, store)
	two := *b
	two.Records = b.Records[:2]
	deliver(t, sink, &two)
	redistest.Do(t, server.Client(), "XADD", stream, "4-0", "a", "b")
	b.Records = b.Records[2:]
	res, err := sink.Deliver(t.Context(), b)
	if !errors.Is(err, outbox.ErrOperator) || !strings.Contains(err.Error(), "ends at id 4, its mark at 2") {
		t.Errorf("got %v, want an operator's mistake that names both", err)
	}
	if len(res.Verdicts) != 3 || res.Verdicts[0].Code == outbox.Accepted {
		t.Errorf("verdicts %+v, want none accepted", res.Verdicts)
	}
}
