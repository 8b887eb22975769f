package statesman

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// NewLineage returns a random lineage.
func NewLineage() Lineage {
	var l Lineage
	_, _ = rand.Read(l[:]) // never fails since Go 1.24
	return l
}

// ParseLineage reads 32 hex digits.
func ParseLineage(s string) (Lineage, error) {
	var l Lineage
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(l) {
		return l, Invalid("lineage %s: want 32 hex digits", quote(s))
	}
	copy(l[:], b)
	return l, nil
}

// String returns 32 hex digits.
func (l Lineage) String() string { return hex.EncodeToString(l[:]) }

// IsZero says whether l is unset.
func (l Lineage) IsZero() bool { return l == Lineage{} }

// MarshalText returns 32 hex digits.
func (l Lineage) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (l *Lineage) UnmarshalText(b []byte) error {
	p, err := ParseLineage(string(b))
	if err == nil {
		*l = p
	}
	return err
}

// IsZero says whether c is the beginning of any store.
func (c Cursor) IsZero() bool { return c == Cursor{} }

// Check refuses a cursor that store's lineage cannot have issued: one of another lineage
// (ErrLineage) or a negative position (ErrInvalid). The zero Cursor passes.
func (c Cursor) Check(store string, lineage Lineage) error {
	if c.Position < 0 {
		return Invalid("cursor position %d: want 0 or more", c.Position)
	}
	if !c.Lineage.IsZero() && c.Lineage != lineage || c.Lineage.IsZero() && c.Position != 0 {
		return &Error{Op: "feed", Store: store,
			Err: fmt.Errorf("cursor %s: %w, the store's is %s", c, ErrLineage, lineage)}
	}
	return nil
}

// String returns lineage:position, "start" for the zero Cursor.
func (c Cursor) String() string {
	if c.IsZero() {
		return "start"
	}
	return c.Lineage.String() + ":" + strconv.FormatInt(c.Position, 10)
}

// ParseCursor reads what String wrote.
func ParseCursor(s string) (Cursor, error) {
	if s == "start" || s == "" {
		return Cursor{}, nil
	}
	lin, pos, ok := strings.Cut(s, ":")
	n, err := strconv.ParseInt(pos, 10, 64)
	if !ok || err != nil || n < 0 {
		return Cursor{}, Invalid("cursor %s: want lineage:position", quote(s))
	}
	l, err := ParseLineage(lin)
	return Cursor{Lineage: l, Position: n}, err
}
