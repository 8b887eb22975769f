package statesman

import "fmt"

type conditionKind uint8

const (
	conditionAny conditionKind = iota + 1
	conditionAbsent
	conditionAt
)

// Condition says what must hold of an address's head for a write to happen. The zero Condition is
// invalid, so that nobody overwrites by forgetting one.
type Condition struct {
	kind     conditionKind
	revision int64
}

// Any holds always.
func Any() Condition { return Condition{kind: conditionAny} }

// Absent holds when the address has no record.
func Absent() Condition { return Condition{kind: conditionAbsent} }

// AtRevision holds when the head has exactly this revision; n must be 1 or more.
func AtRevision(n int64) Condition { return Condition{kind: conditionAt, revision: n} }

// Validate refuses the zero Condition and revisions below 1 with an error matching ErrInvalid.
func (c Condition) Validate() error {
	switch {
	case c.kind == 0:
		return Invalid("zero condition: use Any, Absent or AtRevision")
	case c.kind == conditionAt && c.revision < 1:
		return Invalid("condition at revision %d: revisions begin at 1", c.revision)
	}
	return nil
}

// Holds says whether the condition holds for a head of the given revision, 0 for none.
func (c Condition) Holds(head int64) bool {
	switch c.kind {
	case conditionAny:
		return true
	case conditionAbsent:
		return head == 0
	case conditionAt:
		return head == c.revision
	}
	return false
}

// Revision returns n of AtRevision(n), and false for any other condition.
func (c Condition) Revision() (int64, bool) { return c.revision, c.kind == conditionAt }

// String describes the condition.
func (c Condition) String() string {
	switch c.kind {
	case conditionAny:
		return "any"
	case conditionAbsent:
		return "absent"
	case conditionAt:
		return fmt.Sprintf("revision %d", c.revision)
	}
	return "no condition"
}
