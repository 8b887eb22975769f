package statesman

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// DefaultPartition is the partition of an address that names none.
const DefaultPartition = "default"

// Limits of the parts of an address, in bytes after normalisation.
const (
	MaxRootLen      = 128
	MaxPathLen      = 1024
	MaxSegmentLen   = 255
	MaxPartitionLen = 256
)

// Address names one stream of revisions. The zero Address names nothing; every other one came out
// of NewAddress or ParseAddress and is normalised, so addresses compare with == and serve as map
// keys.
type Address struct{ root, path, partition string }

// NewAddress normalises and checks the parts. An empty partition is DefaultPartition. Errors match
// ErrInvalid and name the part and the rule.
//
//   - root: lower-cased; [a-z0-9][a-z0-9._-]{0,127}
//   - path: trimmed, \ becomes /, runs of / collapse, NFC, lower-cased; segments of at most 255
//     bytes, 1,024 in all; no control characters, no "::", no segment "." or ".."
//   - partition: trimmed, NFC, case kept, at most 256 bytes, no control characters, no "::"
//
// No part begins or ends with a colon.
func NewAddress(root, path, partition string) (Address, error) {
	var a Address
	var err error
	if a.root, err = normalRoot(root); err != nil {
		return Address{}, err
	}
	if a.path, err = normalPath(path); err != nil {
		return Address{}, err
	}
	if a.partition, err = normalPartition(partition); err != nil {
		return Address{}, err
	}
	return a, nil
}

// MustAddress is NewAddress for constants of a program; it panics on an error.
func MustAddress(root, path, partition string) Address {
	a, err := NewAddress(root, path, partition)
	if err != nil {
		panic(err)
	}
	return a
}

// ParseAddress reads the canonical text root::path::partition, or root::path for the default
// partition. Errors match ErrInvalid.
func ParseAddress(canonical string) (Address, error) {
	parts := strings.Split(canonical, "::")
	switch len(parts) {
	case 2:
		return NewAddress(parts[0], parts[1], "")
	case 3:
		if strings.TrimSpace(parts[2]) == "" {
			return Address{}, Invalid("address %q: empty partition", canonical)
		}
		return NewAddress(parts[0], parts[1], parts[2])
	}
	return Address{}, Invalid("address %q: want root::path or root::path::partition", canonical)
}

// Root returns the normalised root.
func (a Address) Root() string { return a.root }

// Path returns the normalised path.
func (a Address) Path() string { return a.path }

// Partition returns the normalised partition.
func (a Address) Partition() string { return a.partition }

// IsZero says whether a names nothing.
func (a Address) IsZero() bool { return a == Address{} }

// String returns the canonical text root::path::partition, "" for the zero Address.
func (a Address) String() string {
	if a.IsZero() {
		return ""
	}
	return a.root + "::" + a.path + "::" + a.partition
}

// Key returns the lower-case hex SHA-256 of the canonical text: the storage key of a store that
// cannot use the text itself.
func (a Address) Key() string {
	sum := sha256.Sum256([]byte(a.String()))
	return hex.EncodeToString(sum[:])
}

// MarshalText returns the canonical text.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (a *Address) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*a = Address{}
		return nil
	}
	p, err := ParseAddress(string(b))
	if err == nil {
		*a = p
	}
	return err
}

func normalRoot(s string) (string, error) {
	r := strings.ToLower(s)
	if r == "" || len(r) > MaxRootLen {
		return "", Invalid("root %s: want 1 to %d characters", quote(s), MaxRootLen)
	}
	for i := range len(r) {
		c := r[i]
		alnum := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return "", Invalid("root %s: want letters a-z, digits, '.', '_', '-', beginning with a letter or digit", quote(s))
		}
	}
	return r, nil
}

func normalPath(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", Invalid("path %s: not UTF-8", quote(s))
	}
	p := lowerNFC(strings.ReplaceAll(strings.TrimSpace(s), `\`, "/"))
	segments := strings.FieldsFunc(p, func(r rune) bool { return r == '/' })
	p = strings.Join(segments, "/")
	switch {
	case p == "":
		return "", Invalid("path %s: empty", quote(s))
	case len(p) > MaxPathLen:
		return "", Invalid("path %s: %d bytes, at most %d are allowed", quote(s), len(p), MaxPathLen)
	case p != strings.TrimSpace(p):
		return "", Invalid("path %s: white space at its ends once slashes are trimmed", quote(s))
	}
	for _, seg := range segments {
		if seg == "." || seg == ".." {
			return "", Invalid("path %s: segment %q is not allowed", quote(s), seg)
		}
		if len(seg) > MaxSegmentLen {
			return "", Invalid("path %s: a segment of %d bytes, at most %d are allowed", quote(s), len(seg), MaxSegmentLen)
		}
	}
	return p, checkText("path", p)
}

func normalPartition(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", Invalid("partition %s: not UTF-8", quote(s))
	}
	p := norm.NFC.String(strings.TrimSpace(s))
	if p == "" {
		if s != "" {
			return "", Invalid("partition %s: blank", quote(s))
		}
		return DefaultPartition, nil
	}
	if len(p) > MaxPartitionLen {
		return "", Invalid("partition %s: %d bytes, at most %d are allowed", quote(s), len(p), MaxPartitionLen)
	}
	return p, checkText("partition", p)
}

// lowerNFC lower-cases into NFC. Lower-casing may leave NFC and composing may leave lower case,
// so it goes on until nothing changes; that takes two rounds at most in Unicode today.
func lowerNFC(s string) string {
	s = norm.NFC.String(s)
	for range 4 {
		next := norm.NFC.String(strings.ToLower(s))
		if next == s {
			break
		}
		s = next
	}
	return s
}

func checkText(part, s string) error {
	for _, r := range s {
		if unicode.IsControl(r) {
			return Invalid("%s %s: control character %U", part, quote(s), r)
		}
	}
	switch {
	case strings.Contains(s, "::"):
		return Invalid("%s %s: contains \"::\"", part, quote(s))
	case strings.HasPrefix(s, ":") || strings.HasSuffix(s, ":"):
		return Invalid("%s %s: begins or ends with a colon", part, quote(s))
	}
	return nil
}

// quote shows input in an error, shortened.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(s[:most], ""))
	}
	return fmt.Sprintf("%q", s)
}
