package outbox

import (
	"context"
	"fmt"
	"sync"

	"github.com/statesman-dev/statesman"
)

// Bookmark is where an outbox is.
type Bookmark struct {
	Cursor statesman.Cursor // everything up to here is settled
	Start  int64            // where it began: what lies at or below was never meant for it, even if the upstream forgets everything
}

// CursorStore keeps the bookmarks of outboxes by their ids. Implementations are safe for
// concurrent use.
type CursorStore interface {
	// Read returns the bookmark of an outbox; ok is false when it has none yet. A bookmark that
	// cannot be read is an error that matches statesman.ErrCorrupt, never a missing one: that
	// would ship everything again without a word.
	Read(ctx context.Context, id string) (b Bookmark, ok bool, err error)
	// Write moves a bookmark forward: at or below the saved position it does nothing. A bookmark
	// of another lineage than the saved one is statesman.ErrLineage.
	Write(ctx context.Context, id string, b Bookmark) error
	// Rewind puts b in place of whatever is saved, backwards and across lineages too. It is the
	// explicit way back, for an upstream that forgot and for operators.
	Rewind(ctx context.Context, id string, b Bookmark) error
}

// MemoryCursors is a CursorStore that forgets with the process: after a restart an outbox begins
// by its start policy. For tests and for upstreams that need no memory. The zero value is ready.
type MemoryCursors struct {
	mu    sync.Mutex // guards following
	marks map[string]Bookmark
}

// Read implements CursorStore.
func (m *MemoryCursors) Read(ctx context.Context, id string) (Bookmark, bool, error) {
	if err := checkCursorCall(ctx, id); err != nil {
		return Bookmark{}, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.marks[id]
	return b, ok, nil
}

// Write implements CursorStore.
func (m *MemoryCursors) Write(ctx context.Context, id string, b Bookmark) error {
	if err := checkBookmark(ctx, id, b); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.marks[id]
	if ok {
		if forward, err := old.precedes(id, b); err != nil || !forward {
			return err
		}
	}
	m.setLocked(id, b)
	return nil
}

// Rewind implements CursorStore.
func (m *MemoryCursors) Rewind(ctx context.Context, id string, b Bookmark) error {
	if err := checkBookmark(ctx, id, b); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setLocked(id, b)
	return nil
}

func (m *MemoryCursors) setLocked(id string, b Bookmark) {
	if m.marks == nil {
		m.marks = make(map[string]Bookmark)
	}
	m.marks[id] = b
}

// precedes says whether next lies ahead of b, the rule of CursorStore.Write.
func (b Bookmark) precedes(id string, next Bookmark) (bool, error) {
	if b.Cursor.Lineage != next.Cursor.Lineage {
		return false, fmt.Errorf("write cursor of outbox %q: %w: saved %s, new %s", id, statesman.ErrLineage, b.Cursor, next.Cursor)
	}
	return next.Cursor.Position > b.Cursor.Position, nil
}

func checkCursorCall(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return checkID(id)
}

func checkBookmark(ctx context.Context, id string, b Bookmark) error {
	if err := checkCursorCall(ctx, id); err != nil {
		return err
	}
	return b.validate()
}

func (b Bookmark) validate() error {
	switch {
	case b.Cursor.Lineage.IsZero():
		return statesman.Invalid("bookmark without a lineage")
	case b.Cursor.Position < 0 || b.Start < 0 || b.Start > b.Cursor.Position:
		return statesman.Invalid("bookmark at position %d, begun at %d: want 0 ≤ begun ≤ position", b.Cursor.Position, b.Start)
	}
	return nil
}

// MaxIDLen bounds an outbox id, in bytes.
const MaxIDLen = 128

func checkID(id string) error {
	if id == "" || len(id) > MaxIDLen {
		return statesman.Invalid("outbox id of %d bytes: want 1 to %d", len(id), MaxIDLen)
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] == 0x7f {
			return statesman.Invalid("outbox id %q: white space and control characters are not allowed", id)
		}
	}
	return nil
}
