package wire

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// TestReadingDoesNotAllocate reads everything there is in a record and in a batch.
func TestReadingDoesNotAllocate(t *testing.T) {
	raw := []byte(encode(t, records()["whole"]))
	sum := 0
	read := func(r Record) {
		for _, b := range [...][]byte{r.Root(), r.Path(), r.Partition(), r.ValueType(), r.Source(), r.ContentType(), r.SerializerID(), r.Fingerprint(),
			r.CorrelationID(), r.CausationID(), r.CommitID()} {
			sum += len(b)
		}
		p, _ := r.Payload()
		fresh, _ := r.FreshUntil()
		serve, _ := r.ServeUntil()
		sum += len(p) + int(fresh+serve+r.Revision()+r.Position()+r.OccurredAt()) + int(r.Operation()+r.Status()) + int(r.SchemaVersion()) + int(r.FormatVersion())
		if err := EachMetadata(r.RawMetadata(), func(k, v []byte) bool { sum += len(k) + len(v); return true }); err != nil {
			t.Fatal(err)
		}
		e, _, err := ParseError(r.RawError())
		if err != nil {
			t.Fatal(err)
		}
		sum += len(e.Code)
	}
	if n := testing.AllocsPerRun(100, func() {
		r, err := Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		read(r)
	}); n != 0 {
		t.Errorf("reading a record allocates %v times", n)
	}
	rawBatch, err := AppendBatch(nil, batches(t)["bodies"])
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		b, err := ParseBatch(rawBatch)
		if err != nil {
			t.Fatal(err)
		}
		id := b.Lineage()
		sum += len(b.Store()) + len(b.ContentType()) + int(b.Attempt()) + int(id[0])
		for i := range b.Len() {
			read(b.Record(i))
			sum += len(b.Body(i))
		}
	}); n != 0 {
		t.Errorf("reading a batch allocates %v times", n)
	}
	if sum == 0 {
		t.Error("nothing was read")
	}
}

func TestAppendKeepsWhatLiesBefore(t *testing.T) {
	f := records()["whole"]
	alone := encode(t, f)
	if f.Size() != len(alone) || len(alone)%8 != 0 {
		t.Errorf("size is %d for %d bytes", f.Size(), len(alone))
	}
	b, err := Append([]byte("abc"), f)
	if err != nil || string(b[:3]) != "abc" || !bytes.Equal(b[3:], alone) {
		t.Errorf("appending behind something changes something: %v", err)
	}
	batch, err := AppendBatch(nil, batches(t)["bodies"])
	if err != nil {
		t.Fatal(err)
	}
	behind, err := AppendBatch(make([]byte, 8, 4096), batches(t)["bodies"])
	if err != nil || !bytes.Equal(behind[8:], batch) {
		t.Errorf("a batch behind something is another: %v", err)
	}
}

// TestPadding has payloads of every length up to two words: padding is zero and belongs to nobody.
func TestPadding(t *testing.T) {
	for n := range 17 {
		f := records()["bare"]
		f.Payload = bytes.Repeat([]byte{0xff}, n)
		dirty := bytes.Repeat([]byte{0xaa}, 512)
		b, err := Append(dirty[:0], f)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := r.Payload(); !ok || !bytes.Equal(p, f.Payload) {
			t.Errorf("payload of %d bytes comes back as %x", n, p)
		}
		end := int(le.Uint32(r[offEnds+4*fieldPayload:]))
		if len(r)-end > 7 || bytes.Trim(r[end:], "\x00") != nil && len(bytes.Trim(r[end:], "\x00")) > 0 {
			t.Errorf("payload of %d bytes is padded with %x", n, r[end:])
		}
	}
}

func TestViewsCannotGrowIntoTheirNeighbours(t *testing.T) {
	r := encode(t, records()["whole"])
	before := bytes.Clone(r)
	_ = append(r.Root(), "overwritten"...)
	_ = append(r.RawMetadata(), "overwritten"...)
	if !bytes.Equal(r, before) {
		t.Error("appending to a view changes the record")
	}
}

func TestStamp(t *testing.T) {
	r := encode(t, records()["whole"])
	before := describe(t, r)
	r.Stamp(11, 12, 13)
	if r.Revision() != 11 || r.Position() != 12 || r.OccurredAt() != 13 {
		t.Errorf("stamped %d, %d, %d", r.Revision(), r.Position(), r.OccurredAt())
	}
	r.Stamp(3, 1<<40, 1741964966535897932)
	if got := fmt.Sprintf("%+v", describe(t, r).Root); got != before.Root || *describe(t, r).Payload != *before.Payload {
		t.Error("a stamp changes something else")
	}
}

func TestAppendRefusesTheHuge(t *testing.T) {
	f := records()["bare"]
	f.Payload = make([]byte, MaxRecordSize) // never touched, so never backed by memory
	dst := []byte("abc")
	if b, err := Append(dst, f); err == nil || string(b) != "abc" {
		t.Errorf("a record of more than %d bytes: %d bytes, %v", MaxRecordSize, len(b), err)
	}
	r := encode(t, records()["bare"])
	if b, err := AppendBatch(nil, &BatchFields{Records: []Record{r}, Bodies: [][]byte{f.Payload}}); err == nil || len(b) != 0 {
		t.Errorf("a batch of more than %d bytes: %d bytes, %v", MaxRecordSize, len(b), err)
	}
	if _, err := AppendBatch(nil, &BatchFields{Records: []Record{r}, Bodies: [][]byte{}}); err == nil {
		t.Error("a batch with fewer bodies than records is encoded")
	}
}

func TestPartsRefuse(t *testing.T) {
	for name, raw := range map[string][]byte{
		"short count": {1, 0, 0}, "no key": {1, 0, 0, 0}, "no value": {1, 0, 0, 0, 1, 0, 0, 0, 'k'},
		"key beyond": {1, 0, 0, 0, 9, 0, 0, 0, 'k'}, "huge key": {1, 0, 0, 0, 255, 255, 255, 255, 'k'},
		"something behind": {0, 0, 0, 0, 7}, "count too large": {255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0},
	} {
		if err := EachMetadata(raw, func([]byte, []byte) bool { return true }); !errors.Is(err, ErrMalformed) {
			t.Errorf("metadata, %s: %v, want ErrMalformed", name, err)
		}
	}
	empty := make([]byte, 17)
	for name, raw := range map[string][]byte{"marker": {2}, "short": {0}, "something behind": append(empty, 0), "text beyond": {0, 9, 0, 0, 0}} {
		if _, ok, err := ParseError(raw); ok || !errors.Is(err, ErrMalformed) {
			t.Errorf("error part, %s: %t, %v, want ErrMalformed", name, ok, err)
		}
	}
	if _, ok, err := ParseError(empty); !ok || err != nil {
		t.Errorf("an error of empty texts: %t, %v", ok, err)
	}
	n := 0
	if err := EachMetadata(encode(t, records()["whole"]).RawMetadata(), func([]byte, []byte) bool { n++; return n < 2 }); err != nil || n != 2 {
		t.Errorf("metadata that was left after two: %d pairs, %v", n, err)
	}
}
