package main

import (
	"fmt"
	"sync"
	"time"
)

// progress tells a person what goes on: one line drawn over on a terminal, else a line now and
// then, so that silence never looks like a hang. It is safe for concurrent use.
type progress struct {
	std stdio
	tty bool

	mu   sync.Mutex // guards what follows
	last time.Time
	open bool // a line is drawn that has no end yet
}

const (
	redrawEvery = 100 * time.Millisecond // on a terminal
	repeatEvery = 2 * time.Second        // elsewhere
)

func newProgress(std stdio) *progress { return &progress{std: std, tty: std.terminal()} }

// step shows what is being done, as often as is useful.
func (p *progress) step(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	every := repeatEvery
	if p.tty {
		every = redrawEvery
	}
	if now := time.Now(); now.Sub(p.last) < every {
		return
	} else {
		p.last = now
	}
	if p.tty {
		fmt.Fprintf(p.std.err, "\r\x1b[K%s", text)
		p.open = true
		return
	}
	fmt.Fprintln(p.std.err, text)
}

// done shows what has happened, always.
func (p *progress) done(text string) {
	p.clear()
	fmt.Fprintln(p.std.err, text)
}

// clear takes a drawn line away, so that something else may be written.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open {
		fmt.Fprint(p.std.err, "\r\x1b[K")
		p.open = false
	}
}
