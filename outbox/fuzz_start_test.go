package outbox

import (
	"errors"
	"testing"

	"github.com/statesman-dev/statesman"
)

// FuzzParseStart: what is taken comes back from its own text, and what is refused is invalid.
func FuzzParseStart(f *testing.F) {
	for _, s := range []string{"", "beginning", "now", "position 7", "position -1", "position  0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseStart(text)
		if err != nil {
			if !errors.Is(err, statesman.ErrInvalid) {
				t.Fatalf("error %v, want ErrInvalid", err)
			}
			return
		}
		if again, err := ParseStart(s.String()); err != nil || again != s {
			t.Fatalf("%q is %v, and that is %v, %v", text, s, again, err)
		}
	})
}
