package statesman

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Pattern selects addresses. It is written root/path with two wildcards: * stands for any run of
// characters within one segment, ** as a whole segment for any number of segments, none included.
// Behind "::" a partition may follow, with * as a wildcard; without it every partition matches.
//
//	app/**              everything below root app
//	app/orders/*        one level
//	*/settings          settings at the top of any root
//	app/**::tenant-*    some partitions
//
// Matching is by the normalised address. The zero Pattern matches everything.
type Pattern struct {
	segments  []string
	partition string // "" = any
	text      string
}

// ParsePattern reads a pattern. "" and "**" match everything. Errors match ErrInvalid.
func ParsePattern(s string) (Pattern, error) {
	text := strings.TrimSpace(s)
	if text == "" {
		return Pattern{}, nil
	}
	path, partition, has := strings.Cut(text, "::")
	if has && (partition == "" || strings.Contains(partition, "::")) {
		return Pattern{}, Invalid("pattern %s: want root/path or root/path::partition", quote(s))
	}
	p := Pattern{partition: norm.NFC.String(partition), text: text}
	path = lowerNFC(strings.ReplaceAll(path, `\`, "/"))
	for seg := range strings.SplitSeq(path, "/") {
		switch {
		case seg == "":
			return Pattern{}, Invalid("pattern %s: empty segment", quote(s))
		case seg == "." || seg == "..":
			return Pattern{}, Invalid("pattern %s: segment %q never matches", quote(s), seg)
		case seg != "**" && strings.Contains(seg, "**"):
			return Pattern{}, Invalid("pattern %s: ** must be a whole segment", quote(s))
		case strings.ContainsAny(seg, "?[]{}!"):
			return Pattern{}, Invalid("pattern %s: only * and ** are wildcards", quote(s))
		}
		p.segments = append(p.segments, seg)
	}
	if partition != "" {
		if err := checkText("pattern partition", partition); err != nil {
			return Pattern{}, err
		}
	}
	return p, nil
}

// String returns the pattern as it was written, "**" for the zero Pattern.
func (p Pattern) String() string {
	if p.text == "" {
		return "**"
	}
	return p.text
}

// Match says whether a is selected.
func (p Pattern) Match(a Address) bool { return p.MatchParts(a.root, a.path, a.partition) }

// MatchParts is Match for the normalised parts of an address. It does not allocate.
func (p Pattern) MatchParts(root, path, partition string) bool {
	if p.partition != "" && !glob(p.partition, partition) {
		return false
	}
	return p.segments == nil || matchSegments(p.segments, segments{root: root, path: path})
}

// segments are what is left to match: root first, unless it is taken, then the path's.
type segments struct {
	root, path string
	rootTaken  bool
}

func (s segments) empty() bool { return s.rootTaken && s.path == "" }

func (s segments) cut() (first string, rest segments) {
	if !s.rootTaken {
		return s.root, segments{path: s.path, rootTaken: true}
	}
	first, s.path, _ = strings.Cut(s.path, "/")
	return first, s
}

// matchSegments is glob with segments for bytes and ** for *. Only the last ** ever has to take one
// more segment, so the work is bounded by pattern times path; trying every ** would be exponential.
func matchSegments(pat []string, left segments) bool {
	p, star, mark := 0, -1, left
	for !left.empty() {
		seg, rest := left.cut()
		switch {
		case p < len(pat) && pat[p] == "**":
			star, mark = p, left
			p++
		case p < len(pat) && glob(pat[p], seg):
			p++
			left = rest
		case star >= 0:
			_, mark = mark.cut()
			p, left = star+1, mark
		default:
			return false
		}
	}
	for p < len(pat) && pat[p] == "**" {
		p++
	}
	return p == len(pat)
}

// glob matches s against a pattern in which * is any run of bytes.
func glob(pat, s string) bool {
	p, i, star, mark := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case p < len(pat) && pat[p] == '*':
			star, mark = p, i
			p++
		case p < len(pat) && pat[p] == s[i]:
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	for p < len(pat) && pat[p] == '*' {
		p++
	}
	return p == len(pat)
}
