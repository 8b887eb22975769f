package main

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"
)

var (
	kills    = flag.Int("kills", 200, "SIGKILLs of TestKillLoop")
	killSeed = flag.Uint64("kill-seed", 0, "seed of TestKillLoop; 0 = from the clock")
)

// TestKillLoop kills the agent at random moments under 16 writers. No acknowledged append may be
// missing afterwards, and no restart may need a hand. The acknowledgements are kept here, outside
// the process that dies.
func TestKillLoop(t *testing.T) {
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("replay with: go test ./cmd/statesman-agent -run TestKillLoop -kill-seed %d -kills %d", seed, *kills)
	rng := rand.New(rand.NewPCG(seed, 1))
	agent := newChild(agentBinary(t), filepath.Join(scratch(t), "data"))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := agent.start(ctx); err != nil {
		t.Fatal(err)
	}
	defer agent.stop()

	// The writers go on over every kill, each repeating what was not acknowledged.
	writing, stop := context.WithCancel(ctx)
	l := &load{client: agent.client, root: "kill", writers: 16, addresses: 64, revisions: 1 << 30}
	written := make(chan error, 1)
	go func() { written <- l.run(writing) }()
	for i := range *kills {
		wait := time.NewTimer(time.Duration(rng.Int64N(int64(25 * time.Millisecond))))
		select {
		case <-wait.C:
		case err := <-written:
			t.Fatalf("kill %d: the writers ended: %v", i, err)
		}
		if err := agent.kill(); err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		if err := agent.start(ctx); err != nil {
			t.Fatalf("restart %d needs a hand: %v", i, err)
		}
	}
	stop()
	if err := <-written; !errors.Is(err, context.Canceled) {
		t.Fatalf("the writers ended with %v", err)
	}
	acks := l.acknowledged()
	if len(acks) < *kills {
		t.Fatalf("only %d appends were acknowledged over %d kills: the writers hardly ran", len(acks), *kills)
	}
	records, err := feed(ctx, agent.client, "kill")
	if err != nil {
		t.Fatal(err)
	}
	// Delivery is another test's: every record counts as arrived.
	got := count(acks, records, asShipped(records))
	if got.Lost != 0 || got.OutOfOrder != 0 {
		t.Errorf("%d kills, %d acknowledged: %d lost, %d out of order", *kills, len(acks), got.Lost, got.OutOfOrder)
	}
	t.Logf("%d kills, %d acknowledged, %d stored, %d lost", *kills, len(acks), len(records), got.Lost)
}

func asShipped(records []stored) []shipped {
	all := make([]shipped, len(records))
	for i, r := range records {
		all[i] = shipped{key(r.address, r.revision), r.address, r.revision}
	}
	return all
}
