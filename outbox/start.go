package outbox

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/statesman-dev/statesman"
)

// Start says where an outbox without a saved cursor begins. The zero Start is the beginning.
type Start struct {
	now      bool
	position int64
}

// StartBeginning ships everything that the store retains.
func StartBeginning() Start { return Start{} }

// StartNow ships what is written from now on.
func StartNow() Start { return Start{now: true} }

// StartAfter ships what lies behind a position.
func StartAfter(position int64) Start { return Start{position: position} }

// ParseStart reads "beginning" (or ""), "now", or "position N". Errors match statesman.ErrInvalid.
func ParseStart(s string) (Start, error) {
	switch s {
	case "", "beginning":
		return StartBeginning(), nil
	case "now":
		return StartNow(), nil
	}
	digits, ok := strings.CutPrefix(s, "position ")
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if !ok || err != nil || n < 0 {
		return Start{}, statesman.Invalid("start %q: want beginning, now, or position N", s)
	}
	return StartAfter(n), nil
}

// String returns what ParseStart reads.
func (s Start) String() string {
	switch {
	case s.now:
		return "now"
	case s.position != 0:
		return "position " + strconv.FormatInt(s.position, 10)
	}
	return "beginning"
}

// bookmark is the first bookmark of an outbox over a store with this tail.
func (s Start) bookmark(tail statesman.Cursor) (Bookmark, error) {
	at := s.position
	if s.now {
		at = tail.Position
	}
	if at > tail.Position {
		return Bookmark{}, &OperatorError{
			Err:  fmt.Errorf("start at position %d: the store's newest is %d", at, tail.Position),
			Hint: "start at a position that the store has reached, or at now",
		}
	}
	return Bookmark{Cursor: statesman.Cursor{Lineage: tail.Lineage, Position: at}, Start: at}, nil
}
