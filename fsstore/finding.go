package fsstore

import (
	"fmt"
	"time"

	"github.com/statesman-dev/statesman"
)

// FindingKind says what is wrong.
type FindingKind string

// The kinds of findings.
const (
	KindTornTail    FindingKind = "torn_tail"    // bytes behind the log that nobody was told of
	KindBadFrame    FindingKind = "bad_frame"    // bytes that were acknowledged and are no valid frame
	KindBadGroup    FindingKind = "bad_group"    // valid frames that their commit frame does not fit
	KindPositionGap FindingKind = "position_gap" // positions that nothing holds and no gap frame declares
	KindRevisionGap FindingKind = "revision_gap" // revisions of an address that are neither there nor pruned nor declared
	KindBadIndex    FindingKind = "bad_index"    // an index file or a checkpoint that says something else than the log
	KindSegment     FindingKind = "segment"      // a segment that is missing, too short, or not what manifest and header say
	KindForeign     FindingKind = "foreign"      // a segment of another store, or an older copy
	KindOrphan      FindingKind = "orphan"       // a file that nothing refers to
	KindCheckpoint  FindingKind = "checkpoint"   // a checkpoint that cannot be read
	KindManifest    FindingKind = "manifest"     // a manifest that cannot be read
	KindQuarantine  FindingKind = "quarantine"   // bytes that were set aside earlier
)

// Severity says what a finding means for the data.
type Severity string

// The severities.
const (
	// SeverityInfo: no data is at risk and nothing needs anybody.
	SeverityInfo Severity = "info"
	// SeverityDerived: all records are there; something that is made from them, or lies beside them,
	// is wrong.
	SeverityDerived Severity = "derived"
	// SeverityDamage: something that was acknowledged is gone or cannot be read.
	SeverityDamage Severity = "damage"
)

// Finding is one thing that Verify saw.
type Finding struct {
	Kind     FindingKind `json:"kind"`
	Severity Severity    `json:"severity"`
	Path     string      `json:"path"`               // inside the store's directory, with slashes; "" = no single file
	Offset   int64       `json:"offset"`             // byte in the file
	Length   int64       `json:"length"`             // bytes; 0 = a place, or the whole file
	First    int64       `json:"first,omitempty"`    // positions concerned, inclusive; 0 = none is known
	Last     int64       `json:"last,omitempty"`     //
	Address  string      `json:"address,omitempty"`  // canonical, where it is known
	Revision int64       `json:"revision,omitempty"` // of Address; 0 = not known
	Text     string      `json:"text"`               // one sentence
	Try      string      `json:"try,omitempty"`      // the way out
}

// Lost is a run of positions whose records are gone.
type Lost struct {
	First     int64      `json:"first"`
	Last      int64      `json:"last"`
	Path      string     `json:"path"`                // of the segment that held them
	Concerned []Concerns `json:"concerned,omitempty"` // what is known of whose they were, at most 100
}

// Concerns names a revision that was lost.
type Concerns struct {
	Address  string `json:"address"` // canonical
	Revision int64  `json:"revision"`
	Newest   bool   `json:"newest"` // no newer revision is known
}

// Action is one thing that Repair did, or would do.
type Action struct {
	Path string `json:"path"` // inside the store's directory, with slashes
	Text string `json:"text"` // one sentence
}

// Report is what Verify and Repair found. Bytes and records are those of the log.
type Report struct {
	Dir      string              `json:"dir"`
	Name     string              `json:"name"`
	Lineage  string              `json:"lineage"`
	Position int64               `json:"position"` // the highest that was given
	Segments int64               `json:"segments"`
	Records  int64               `json:"records"` // intact, pruned ones included
	Bytes    int64               `json:"bytes"`   // read
	Took     time.Duration       `json:"tookNs"`
	Counts   map[FindingKind]int `json:"counts"`   // of all findings
	Findings []Finding           `json:"findings"` // at most 10,000; Counts has them all
	Gaps     []statesman.Gap     `json:"-"`        // declared lost earlier
	Declared int64               `json:"declared"` // positions in Gaps
	Lost     []Lost              `json:"lost"`     // positions found lost and not declared
	// LostPositions counts the positions in Lost.
	LostPositions int64 `json:"lostPositions"`
	// InDoubt counts the addresses whose newest revision may be lost: at most so many.
	InDoubt int64 `json:"inDoubt"`

	// Repair fills in the rest.
	Applied    bool     `json:"applied"`             // the actions were done; else they would be
	Actions    []Action `json:"actions"`             // what it did, or would do, in this order
	Quarantine string   `json:"quarantine"`          // where bytes were set aside; "" = none were
	Kept       int64    `json:"kept"`                // records written again, out of damaged segments
	Remaining  int      `json:"remaining,omitempty"` // findings above info that are there afterwards
}

// Severity returns the worst of the findings, SeverityInfo when there are none.
func (r *Report) Severity() Severity {
	worst := SeverityInfo
	for _, f := range r.Findings {
		switch {
		case f.Severity == SeverityDamage:
			return SeverityDamage
		case f.Severity == SeverityDerived:
			worst = SeverityDerived
		}
	}
	return worst
}

// Clean says whether nothing was found that needs anybody.
func (r *Report) Clean() bool { return r.Severity() == SeverityInfo }

// maxFindings bounds what a report holds of a store that is damaged all over.
const maxFindings = 10_000

// add counts a finding and keeps it. Damage goes in front of what is only worth knowing when there is no
// more room, so that Severity stays right.
func (r *Report) add(f Finding) {
	r.Counts[f.Kind]++
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, f)
	} else if f.Severity == SeverityDamage && r.Severity() != SeverityDamage {
		r.Findings[maxFindings-1] = f
	}
}

func (s span) String() string {
	if s.first == s.last {
		return fmt.Sprintf("position %d", s.first)
	}
	return fmt.Sprintf("positions %d to %d", s.first, s.last)
}
