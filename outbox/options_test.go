package outbox_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/outbox"
)

func TestNewNamesEveryFault(t *testing.T) {
	_, err := outbox.New("a b", nil, nil, nil, &outbox.Options{
		StoreName: " ", BatchRecords: -1, BatchBytes: outbox.MaxBatchBytes + 1, LeaseTTL: -1, Poll: -1,
		MinRetry: 2 * time.Second, MaxRetry: time.Second, Probe: -1, OnPoison: "deadletter", Start: outbox.StartAfter(-1),
	})
	if !errors.Is(err, statesman.ErrInvalid) {
		t.Fatalf("got %v, want ErrInvalid", err)
	}
	for _, want := range []string{"outbox id", "no store", "no sink", "no cursor store", "store name", "batch records -1",
		"batch bytes", "lease ttl", "poll", "max retry 1s: want at least", "probe", `on poison "deadletter": want "block"`, "start position -1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %q", err, want)
		}
	}
	if _, err := outbox.New("x", newStore(t), &fakeSink{}, &outbox.MemoryCursors{}, &outbox.Options{MaxRetry: time.Minute}); err == nil ||
		!strings.Contains(err.Error(), "less than the lease ttl") {
		t.Errorf("max retry above the lease: got %v", err)
	}
}

func TestNewAsksForCapabilities(t *testing.T) {
	cases := []struct {
		name   string
		hidden []reflect.Type
		opts   *outbox.Options
		want   string // "" = accepted
	}{
		{"all", nil, nil, ""},
		{"no feed", []reflect.Type{reflect.TypeFor[statesman.Feed](), reflect.TypeFor[statesman.FlatFeed]()}, nil, "no Feed"},
		{"only a flat feed", []reflect.Type{reflect.TypeFor[statesman.Feed]()}, nil, ""},
		{"no identity", []reflect.Type{reflect.TypeFor[statesman.Identity]()}, nil, "no Identity"},
		{"no lease", []reflect.Type{reflect.TypeFor[statesman.Leaser]()}, nil, "RunWithoutLease"},
		{"no lease, told so", []reflect.Type{reflect.TypeFor[statesman.Leaser]()}, &outbox.Options{RunWithoutLease: true}, ""},
		{"no notifier", []reflect.Type{reflect.TypeFor[statesman.Notifier]()}, nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			s.hidden = c.hidden
			fill(t, s, 3)
			sink := &fakeSink{}
			d, err := outbox.New("upstream", s, sink, &outbox.MemoryCursors{}, c.opts)
			if c.want != "" {
				if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "desk-1") {
					t.Errorf("got %v, want ErrUnsupported that names %q and the store", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			dispatch(t, d)
			wantPositions(t, sink, span(1, 3))
		})
	}
}

func TestParseStart(t *testing.T) {
	for _, s := range []string{"beginning", "now", "position 42"} {
		p, err := outbox.ParseStart(s)
		if err != nil || p.String() != s {
			t.Errorf("ParseStart(%q) = %q, %v", s, p, err)
		}
	}
	if p, err := outbox.ParseStart(""); err != nil || p != outbox.StartBeginning() {
		t.Errorf("ParseStart of nothing = %q, %v, want the beginning", p, err)
	}
	for _, s := range []string{"end", "position", "position -1", "position x", "42", "Now"} {
		if _, err := outbox.ParseStart(s); !errors.Is(err, statesman.ErrInvalid) {
			t.Errorf("ParseStart(%q): %v, want ErrInvalid", s, err)
		}
	}
}
