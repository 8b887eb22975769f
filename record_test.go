package statesman_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
)

var instant = time.Date(2025, 3, 14, 15, 9, 26, 535897932, time.UTC)

// whole is a record with every field set.
func whole() *statesman.Record {
	return &statesman.Record{
		Address: statesman.MustAddress("app", "orders/1", "T"), Revision: 3, Position: 9, OccurredAt: instant,
		Operation: statesman.Refreshed, Status: statesman.StatusStale, ValueType: "order", SchemaVersion: 2, Payload: []byte("\x00payload"),
		Envelope:   &statesman.Envelope{ContentType: "application/json", SerializerID: "own/v1", Fingerprint: "ff", FormatVersion: 1},
		FreshUntil: instant.Add(time.Minute), ServeUntil: instant.Add(time.Hour), Source: "till", CorrelationID: "c", CausationID: "d", CommitID: "e",
		Metadata: map[string]string{"Trace": "1", "": "never"}, Error: &statesman.RecordError{Code: "E", Message: "m", ExceptionType: "T", Detail: "d", IsTransient: true},
	}
}

// valid is whole without its one mistake.
func valid() *statesman.Record {
	r := whole()
	delete(r.Metadata, "")
	return r
}

// brokenRecords breaks one rule each.
var brokenRecords = []struct {
	name string
	edit func(*statesman.Record)
	want error
}{
	{"unknown operation", func(r *statesman.Record) { r.Operation = 8 }, statesman.ErrInvalid},
	{"absent", func(r *statesman.Record) { r.Status = statesman.StatusAbsent }, statesman.ErrInvalid},
	{"unknown status", func(r *statesman.Record) { r.Status = 6 }, statesman.ErrInvalid},
	{"no value type", func(r *statesman.Record) { r.ValueType = " " }, statesman.ErrInvalid},
	{"long value type", func(r *statesman.Record) { r.ValueType = strings.Repeat("x", 4097) }, statesman.ErrInvalid},
	{"value type not UTF-8", func(r *statesman.Record) { r.ValueType = "\xff" }, statesman.ErrInvalid},
	{"blank source", func(r *statesman.Record) { r.Source = "\t" }, statesman.ErrInvalid},
	{"negative schema version", func(r *statesman.Record) { r.SchemaVersion = -1 }, statesman.ErrInvalid},
	{"schema version of 2^31", func(r *statesman.Record) { r.SchemaVersion = 1 << 31 }, statesman.ErrInvalid},
	{"stale without payload", func(r *statesman.Record) { r.Payload = nil }, statesman.ErrInvalid},
	{"cleared with payload", func(r *statesman.Record) { r.Operation = statesman.Cleared }, statesman.ErrInvalid},
	{"long commit id", func(r *statesman.Record) { r.CommitID = strings.Repeat("x", 129) }, statesman.ErrInvalid},
	{"correlation id not UTF-8", func(r *statesman.Record) { r.CorrelationID = "a\xc3" }, statesman.ErrInvalid},
	{"fresh until before 1970", func(r *statesman.Record) { r.FreshUntil = time.Unix(-1, 0) }, statesman.ErrInvalid},
	{"serve until before fresh until", func(r *statesman.Record) { r.ServeUntil = r.FreshUntil.Add(-1) }, statesman.ErrInvalid},
	{"serve until after 2262", func(r *statesman.Record) { r.ServeUntil = time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC) }, statesman.ErrInvalid},
	{"envelope without type", func(r *statesman.Record) { r.Envelope.ContentType = "" }, statesman.ErrInvalid},
	{"envelope without serializer", func(r *statesman.Record) { r.Envelope.SerializerID = "" }, statesman.ErrInvalid},
	{"envelope version of 2^16", func(r *statesman.Record) { r.Envelope.FormatVersion = 1 << 16 }, statesman.ErrInvalid},
	{"empty metadata key", func(r *statesman.Record) { r.Metadata[""] = "x" }, statesman.ErrInvalid},
	{"metadata keys alike", func(r *statesman.Record) { r.Metadata["TRACE"] = "2" }, statesman.ErrInvalid},
	{"metadata not UTF-8", func(r *statesman.Record) { r.Metadata["x"] = "\xff" }, statesman.ErrInvalid},
	{"large metadata", func(r *statesman.Record) { r.Metadata["x"] = strings.Repeat("x", 64<<10) }, statesman.ErrInvalid},
	{"error without code", func(r *statesman.Record) { r.Error.Code = "" }, statesman.ErrInvalid},
	{"error without message", func(r *statesman.Record) { r.Error.Message = "" }, statesman.ErrInvalid},
	{"large error", func(r *statesman.Record) { r.Error.Detail = strings.Repeat("x", 64<<10) }, statesman.ErrInvalid},
	{"error not UTF-8", func(r *statesman.Record) { r.Error.Detail = "\xff" }, statesman.ErrInvalid},
	{"large payload", func(r *statesman.Record) { r.Payload = make([]byte, 101) }, statesman.ErrTooLarge},
}

func commitOf(r *statesman.Record) *statesman.Commit {
	return &statesman.Commit{Operation: r.Operation, Status: r.Status, ValueType: r.ValueType, SchemaVersion: r.SchemaVersion, Payload: r.Payload,
		Envelope: r.Envelope, FreshUntil: r.FreshUntil, ServeUntil: r.ServeUntil, Source: r.Source, CorrelationID: r.CorrelationID,
		CausationID: r.CausationID, CommitID: r.CommitID, Metadata: r.Metadata, Error: r.Error}
}

func TestValidate(t *testing.T) {
	if err := valid().Validate(100); err != nil {
		t.Errorf("a valid record: %v", err)
	}
	if err := commitOf(valid()).Validate(100); err != nil {
		t.Errorf("a valid commit: %v", err)
	}
	for _, tc := range brokenRecords {
		r := valid()
		tc.edit(r)
		if err := r.Validate(100); !errors.Is(err, tc.want) {
			t.Errorf("record, %s: %v, want %v", tc.name, err, tc.want)
		}
		if err := commitOf(r).Validate(100); !errors.Is(err, tc.want) {
			t.Errorf("commit, %s: %v, want %v", tc.name, err, tc.want)
		}
	}
	for name, edit := range map[string]func(*statesman.Record){
		"no address":       func(r *statesman.Record) { r.Address = statesman.Address{} },
		"revision 0":       func(r *statesman.Record) { r.Revision = 0 },
		"position 0":       func(r *statesman.Record) { r.Position = 0 },
		"no time":          func(r *statesman.Record) { r.OccurredAt = time.Time{} },
		"time before 1970": func(r *statesman.Record) { r.OccurredAt = time.Unix(0, -1) },
		"time after 2262":  func(r *statesman.Record) { r.OccurredAt = time.Unix(0, 1<<63-1).Add(1) },
	} {
		r := valid()
		edit(r)
		if err := r.Validate(0); !errors.Is(err, statesman.ErrInvalid) {
			t.Errorf("record, %s: %v, want ErrInvalid", name, err)
		}
	}
	var noRecord *statesman.Record
	var noCommit *statesman.Commit
	if err := errors.Join(noRecord.Validate(0), noCommit.Validate(0)); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("nil: %v, want ErrInvalid", err)
	}
}

// TestValidateReportsEverything has three mistakes in one commit.
func TestValidateReportsEverything(t *testing.T) {
	c := commitOf(valid())
	c.ValueType, c.Payload, c.CommitID = "", nil, strings.Repeat("x", 200)
	err := c.Validate(0)
	for _, want := range []string{"value type", "needs a payload", "commit id"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not speak of %q: %v", want, err)
		}
	}
}

func TestDefaultPayloadLimit(t *testing.T) {
	c := statesman.SetCommit("t", "text/plain", make([]byte, statesman.DefaultMaxPayload))
	if err := c.Validate(0); err != nil {
		t.Errorf("payload at the limit: %v", err)
	}
	c.Payload = make([]byte, statesman.DefaultMaxPayload+1)
	if err := c.Validate(0); !errors.Is(err, statesman.ErrTooLarge) {
		t.Errorf("payload above the limit: %v, want ErrTooLarge", err)
	}
}

func TestCommitDefaults(t *testing.T) {
	r := statesman.ClearCommit("t").Record(statesman.MustAddress("a", "b", ""), 1, 2, instant.In(time.FixedZone("x", 3600)))
	if r.SchemaVersion != 1 || r.Source != "application" || r.OccurredAt.Location() != time.UTC || !r.OccurredAt.Equal(instant) {
		t.Errorf("the record of a bare commit is %+v", r)
	}
	if c := statesman.SetCommit("t", "text/plain", nil); c.Payload == nil || c.Validate(0) != nil {
		t.Errorf("SetCommit without payload: %+v", c)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	r, c := valid(), valid()
	clone := r.Clone()
	fromCommit := commitOf(c).Record(c.Address, c.Revision, c.Position, c.OccurredAt)
	for _, source := range []*statesman.Record{r, c} {
		clear(source.Payload)
		source.Metadata["Trace"] = "spoiled"
		source.Envelope.ContentType, source.Error.Message = "spoiled", "spoiled"
	}
	if !clone.Equal(valid()) {
		t.Errorf("a clone changed with its original: %+v", clone)
	}
	if !fromCommit.Equal(valid()) {
		t.Errorf("a record changed with its commit: %+v", fromCommit)
	}
	empty := valid()
	empty.Metadata = map[string]string{}
	if empty.Clone().Metadata != nil {
		t.Error("empty metadata is not the same as none")
	}
	var none *statesman.Record
	if none.Clone() != nil {
		t.Error("a clone of nil is not nil")
	}
}

// TestEqual changes one field at a time.
func TestEqual(t *testing.T) {
	var none *statesman.Record
	if !none.Equal(nil) || none.Equal(valid()) || valid().Equal(nil) || !valid().Equal(valid()) {
		t.Error("nil or itself is compared wrongly")
	}
	for i, edit := range []func(*statesman.Record){
		func(r *statesman.Record) { r.Address = statesman.MustAddress("a", "b", "") },
		func(r *statesman.Record) { r.Revision++ },
		func(r *statesman.Record) { r.Position++ },
		func(r *statesman.Record) { r.OccurredAt = r.OccurredAt.Add(1) },
		func(r *statesman.Record) { r.Operation++ },
		func(r *statesman.Record) { r.Status++ },
		func(r *statesman.Record) { r.ValueType += "x" },
		func(r *statesman.Record) { r.SchemaVersion++ },
		func(r *statesman.Record) { r.Payload[0]++ },
		func(r *statesman.Record) { r.Payload = nil },
		func(r *statesman.Record) { r.Envelope = nil },
		func(r *statesman.Record) { r.Envelope.Fingerprint = "" },
		func(r *statesman.Record) { r.FreshUntil = time.Time{} },
		func(r *statesman.Record) { r.ServeUntil = r.ServeUntil.Add(1) },
		func(r *statesman.Record) { r.Source += "x" },
		func(r *statesman.Record) { r.CorrelationID = "" },
		func(r *statesman.Record) { r.CausationID = "" },
		func(r *statesman.Record) { r.CommitID = "" },
		func(r *statesman.Record) { r.Metadata["more"] = "" },
		func(r *statesman.Record) { r.Metadata = nil },
		func(r *statesman.Record) { r.Error = nil },
		func(r *statesman.Record) { r.Error.IsTransient = false },
	} {
		r := valid()
		edit(r)
		if r.Equal(valid()) || valid().Equal(r) {
			t.Errorf("edit %d makes no difference", i)
		}
	}
	r := valid()
	r.OccurredAt = r.OccurredAt.In(time.FixedZone("x", 7200))
	if !r.Equal(valid()) {
		t.Error("the same instant in another zone makes a difference")
	}
	empty := valid()
	empty.Payload = []byte{}
	absent := valid()
	absent.Payload = nil
	if empty.Equal(absent) {
		t.Error("an empty payload equals none")
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		statesman.Seeded.String(): "seeded", statesman.Imported.String(): "imported", statesman.Operation(9).String(): "operation(9)",
		statesman.StatusAbsent.String(): "absent", statesman.StatusFaulted.String(): "faulted", statesman.Status(9).String(): "status(9)",
	} {
		if got != want {
			t.Errorf("name is %q, want %q", got, want)
		}
	}
}
