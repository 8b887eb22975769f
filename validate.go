package statesman

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/statesman-dev/statesman/internal/wire"
)

// faults gathers what is wrong, so that one error names everything.
type faults []string

func (f *faults) add(format string, args ...any) {
	*f = append(*f, fmt.Sprintf(format, args...))
}

// check is add for a broken rule. Its arguments are boxed whether it is broken or not, so what every
// append has to pass asks first and then adds.
func (f *faults) check(ok bool, format string, args ...any) {
	if !ok {
		f.add(format, args...)
	}
}

func (f *faults) text(name, s string) {
	if len(s) > MaxTextLen {
		f.add("%s of %d bytes, at most %d are allowed", name, len(s), MaxTextLen)
	}
	f.utf8(name, s)
}

func (f *faults) utf8(name string, texts ...string) {
	for _, s := range texts {
		if !utf8.ValidString(s) {
			f.add("%s is not UTF-8", name)
		}
	}
}

func (f *faults) metadata(m map[string]string) {
	if len(m) == 0 {
		return
	}
	size, lower := 0, make(map[string]string, len(m))
	for k, v := range m {
		size += len(k) + len(v)
		f.check(k != "", "empty metadata key")
		f.utf8("metadata "+quote(k), k, v)
		l := strings.ToLower(k)
		if other, twice := lower[l]; twice {
			f.check(false, "metadata keys %q and %q differ only in case", min(other, k), max(other, k))
		}
		lower[l] = k
	}
	f.check(size <= MaxMetadataSize, "metadata of %d bytes, at most %d are allowed", size, MaxMetadataSize)
}

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return Invalid("%s", strings.Join(f, "; "))
}

func tooLarge(format string, args ...any) error {
	return &kindError{msg: fmt.Sprintf(format, args...), kind: ErrTooLarge}
}

// inRange keeps instants inside what int64 nanoseconds since 1970 can hold.
func inRange(t time.Time) bool {
	return !t.Before(time.Unix(0, 0)) && t.Before(time.Unix(0, 1<<63-1))
}

// String returns the operation's lower-case name.
func (o Operation) String() string {
	return nameOr(wire.OperationName(uint8(o)), "operation", uint8(o))
}

// String returns the status's lower-case name.
func (s Status) String() string { return nameOr(wire.StatusName(uint8(s)), "status", uint8(s)) }

func nameOr(name, kind string, n uint8) string {
	if name == "" {
		return fmt.Sprintf("%s(%d)", kind, n)
	}
	return name
}
