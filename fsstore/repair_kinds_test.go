package fsstore

import (
	"slices"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// damageBench is a closed store that is about to be damaged.
type damageBench struct {
	t     *testing.T
	image *vfs.Mem
	tr    truth
	next  int64    // position
	segs  []string // segment files, oldest first
}

func (d *damageBench) last() string { return d.segs[len(d.segs)-1] }

// forge appends a group to a segment: records as they are, whatever they say, between the positions that the
// commit frame tells of.
func (d *damageBench) forge(file string, next, last int64, records ...*statesman.Record) (off int64) {
	d.t.Helper()
	b := readFile(d.t, d.image, file)
	seed := seedOf(le.Uint64(b[32:]))
	sum := seed
	var g []byte
	for _, r := range records {
		flat, err := statesman.AppendFlat(nil, r)
		if err != nil {
			d.t.Fatal(err)
		}
		f := append(make([]byte, frameHeader), flat...)
		closeFrame(f, kindRecord, seed)
		sum = foldCRC(sum, f)
		g = append(g, f...)
		d.tr.ever[brief(r)] = true
		d.tr.feed = append(d.tr.feed, brief(r))
	}
	c := commitFrame{count: uint32(len(records)), sum: sum, syncedThrough: int64(len(b)), next: next, last: last, epoch: 1}
	writeFile(d.t, d.image, file, int64(len(b)), c.append(g, seed))
	return int64(len(b))
}

// frameOf returns where the n-th frame of a kind lies in a segment.
func (d *damageBench) frameOf(file string, kind frameKind, n int) (off, size int64) {
	d.t.Helper()
	b := readFile(d.t, d.image, file)
	for off = segHeaderSize; off+frameHeader <= int64(len(b)); off += size {
		k, s, ok := frameLen(b[off:])
		if !ok {
			break
		}
		if size = int64(s); k == kind {
			if n == 0 {
				return off, size
			}
			n--
		}
	}
	d.t.Fatalf("%s has no such frame of kind %d", file, kind)
	return 0, 0
}

func (d *damageBench) flip(file string, off int64) {
	b := readFile(d.t, d.image, file)
	writeFile(d.t, d.image, file, off, []byte{b[off] ^ 2})
}

func inStore(file string) string { return strings.TrimPrefix(file, testDir+"/") }

// TestFindingKinds produces every kind of finding by really damaging files. Each must be found where it
// is, be repaired so that nothing is found any more, and cost no record that was not hit.
func TestFindingKinds(t *testing.T) {
	tests := []struct {
		name   string
		damage func(d *damageBench) Finding // what must be found; Text is not compared
	}{
		{"torn tail", func(d *damageBench) Finding {
			n := int64(len(readFile(t, d.image, d.last())))
			writeFile(t, d.image, d.last(), n, []byte("half a group"))
			return Finding{Kind: KindTornTail, Severity: SeverityInfo, Path: inStore(d.last()), Offset: n, Length: 12}
		}},
		{"bad frame", func(d *damageBench) Finding {
			off, size := d.frameOf(d.segs[0], kindRecord, 1)
			d.flip(d.segs[0], off+size-1)
			return Finding{Kind: KindBadFrame, Severity: SeverityDamage, Path: inStore(d.segs[0]), Offset: off, Length: size, First: 2, Last: 2,
				Address: "app::orders/02::default", Revision: 1}
		}},
		{"bad prune frame", func(d *damageBench) Finding {
			off, size := d.frameOf(d.segs[0], kindPrune, 0)
			d.flip(d.segs[0], off+17)
			return Finding{Kind: KindBadFrame, Severity: SeverityDamage, Path: inStore(d.segs[0]), Offset: off, Length: size}
		}},
		{"bad header", func(d *damageBench) Finding {
			d.flip(d.segs[0], 60)
			return Finding{Kind: KindBadFrame, Severity: SeverityDamage, Path: inStore(d.segs[0]), Length: segHeaderSize}
		}},
		{"bad group", func(d *damageBench) Finding {
			off, _ := d.frameOf(d.segs[0], kindCommit, 1)
			b := readFile(t, d.image, d.segs[0])
			c, err := parseCommit(b[off : off+commitSize])
			if err != nil {
				t.Fatal(err)
			}
			c.count++
			writeFile(t, d.image, d.segs[0], off, c.append(nil, seedOf(le.Uint64(b[32:]))))
			return Finding{Kind: KindBadGroup, Severity: SeverityDamage, Path: inStore(d.segs[0]), Offset: off, Length: commitSize}
		}},
		{"position gap", func(d *damageBench) Finding {
			off := d.forge(d.last(), d.next+3, d.next+3, foreignRecord(42, 1, d.next+3, "behind a gap"))
			return Finding{Kind: KindPositionGap, Severity: SeverityDamage, Path: inStore(d.last()), Offset: off, First: d.next, Last: d.next + 2}
		}},
		{"revision gap", func(d *damageBench) Finding {
			off := d.forge(d.last(), d.next, d.next, foreignRecord(42, 3, d.next, "two revisions are missing"))
			return Finding{Kind: KindRevisionGap, Severity: SeverityDamage, Path: inStore(d.last()), Offset: off, First: 1, Last: d.next - 1,
				Address: "app::orders/42::default", Revision: 1}
		}},
		{"bad index file", func(d *damageBench) Finding {
			idx := strings.TrimSuffix(d.segs[0], ".seg") + ".idx"
			d.flip(idx, 80)
			return Finding{Kind: KindBadIndex, Severity: SeverityDerived, Path: inStore(idx)}
		}},
		{"index file of something else", func(d *damageBench) Finding {
			idx := strings.TrimSuffix(d.segs[0], ".seg") + ".idx"
			b := encodeIndex(statesman.Lineage{9}, 7, 128, nil, nil)
			cut(t, d.image, idx, 0)
			writeFile(t, d.image, idx, 0, b)
			return Finding{Kind: KindBadIndex, Severity: SeverityDerived, Path: inStore(idx)}
		}},
		{"index file that lists other places", func(d *damageBench) Finding {
			idx := strings.TrimSuffix(d.segs[0], ".seg") + ".idx"
			old := readFile(t, d.image, idx)
			h, err := parseIdxHeader(old)
			if err != nil {
				t.Fatal(err)
			}
			list := make([]uint32, h.list) // all the same
			b := encodeIndex(h.lineage, h.segment, h.end, []block{{1, segHeaderSize}}, list)
			cut(t, d.image, idx, 0)
			writeFile(t, d.image, idx, 0, b)
			return Finding{Kind: KindBadIndex, Severity: SeverityDerived, Path: inStore(idx)}
		}},
		{"checkpoint that disagrees", func(d *damageBench) Finding {
			file := newestOf(t, d.image, checkpointPrefix)
			h, x, err := parseCheckpoint(readFile(t, d.image, file))
			if err != nil {
				t.Fatal(err)
			}
			x.list[0].retained++
			b := x.beginLocked(1, make([]byte, ckpHeaderSize))
			for _, h := range x.list {
				x.preserveLocked(h)
			}
			b = append(putUint(b, int64(x.snap.heads)), x.snap.buf...)
			cut(t, d.image, file, 0)
			writeFile(t, d.image, file, 0, closeCheckpoint(b, h))
			return Finding{Kind: KindBadIndex, Severity: SeverityDerived, Path: inStore(file), Address: x.list[0].key}
		}},
		{"missing segment", func(d *damageBench) Finding {
			if err := d.image.Remove(d.segs[1]); err != nil {
				t.Fatal(err)
			}
			base, _, _ := parseSegName(strings.TrimPrefix(d.segs[1], testDir+"/log/"))
			after, _, _ := parseSegName(strings.TrimPrefix(d.segs[2], testDir+"/log/"))
			return Finding{Kind: KindSegment, Severity: SeverityDamage, Path: inStore(d.segs[1]), First: base, Last: after - 1}
		}},
		{"short segment", func(d *damageBench) Finding {
			n := int64(len(readFile(t, d.image, d.segs[0])))
			off, size := d.frameOf(d.segs[0], kindRecord, 3)
			cut(t, d.image, d.segs[0], off+size)
			return Finding{Kind: KindSegment, Severity: SeverityDamage, Path: inStore(d.segs[0]), Offset: off + size, Length: n - off - size}
		}},
		{"segment that was not sealed", func(d *damageBench) Finding {
			file := newestOf(t, d.image, manifestPrefix)
			m, err := parseManifest(readFile(t, d.image, file))
			if err != nil {
				t.Fatal(err)
			}
			m.segments[0].sha256[3] ^= 1
			writeFile(t, d.image, file, 0, m.encode())
			return Finding{Kind: KindSegment, Severity: SeverityDamage, Path: inStore(d.segs[0]), Length: int64(len(readFile(t, d.image, d.segs[0])))}
		}},
		{"segment of another store", func(d *damageBench) Finding {
			h := segHeader{lineage: statesman.Lineage{1, 2, 3}, id: 77, seq: 9, base: d.next}
			file := testDir + "/" + logDir + "/" + segName(h.base, h.id)
			writeFile(t, d.image, file, 0, h.encode())
			return Finding{Kind: KindForeign, Severity: SeverityDerived, Path: inStore(file)}
		}},
		{"older copy of a segment", func(d *damageBench) Finding {
			b := readFile(t, d.image, d.segs[0])
			h, err := parseSegHeader(b)
			if err != nil {
				t.Fatal(err)
			}
			h.id, h.base = 78, d.next // it lies where the next segment would be
			file := testDir + "/" + logDir + "/" + segName(h.base, h.id)
			writeFile(t, d.image, file, 0, h.encode())
			return Finding{Kind: KindForeign, Severity: SeverityDerived, Path: inStore(file)}
		}},
		{"another segment in its place", func(d *damageBench) Finding {
			b := readFile(t, d.image, d.segs[1])
			cut(t, d.image, d.segs[0], 0)
			writeFile(t, d.image, d.segs[0], 0, b)
			return Finding{Kind: KindForeign, Severity: SeverityDamage, Path: inStore(d.segs[0]), Length: int64(len(b))}
		}},
		{"orphan", func(d *damageBench) Finding {
			writeFile(t, d.image, testDir+"/"+logDir+"/notes", 0, []byte("x"))
			return Finding{Kind: KindOrphan, Severity: SeverityInfo, Path: logDir + "/notes"}
		}},
		{"unreadable checkpoint", func(d *damageBench) Finding {
			file := newestOf(t, d.image, checkpointPrefix)
			d.flip(file, 70)
			return Finding{Kind: KindCheckpoint, Severity: SeverityDerived, Path: inStore(file), Length: int64(len(readFile(t, d.image, file)))}
		}},
		{"unreadable manifest", func(d *damageBench) Finding {
			file := newestOf(t, d.image, manifestPrefix)
			d.flip(file, 30)
			return Finding{Kind: KindManifest, Severity: SeverityDerived, Path: inStore(file), Length: int64(len(readFile(t, d.image, file)))}
		}},
		{"no manifest", func(d *damageBench) Finding {
			for _, f := range allFiles(t, d.image) {
				if strings.HasPrefix(inStore(f), manifestPrefix) {
					d.flip(f, 30)
				}
			}
			return Finding{Kind: KindManifest, Severity: SeverityDamage}
		}},
		{"quarantine", func(d *damageBench) Finding {
			if err := d.image.MkdirAll(testDir + "/" + quarantineDir); err != nil {
				t.Fatal(err)
			}
			writeFile(t, d.image, testDir+"/"+quarantineDir+"/old", 0, []byte("x"))
			return Finding{Kind: KindQuarantine, Severity: SeverityInfo, Path: quarantineDir + "/old"}
		}},
	}
	stores, ever, _ := damagedStores(t)
	base := stores["closed"]
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := &damageBench{t: t, image: base.Clone()}
			s, err := Open(testDir, smallOptions(d.image.Clone()))
			if err != nil {
				t.Fatal(err)
			}
			d.tr = truthOf(t, s)
			d.tr.ever = cloneSet(ever)
			d.next = s.Stats().Position + 1
			s.Close()
			d.segs = slices.DeleteFunc(allFiles(t, d.image), func(n string) bool { return !strings.HasSuffix(n, ".seg") })
			want := tt.damage(d)
			rep := mustVerify(t, d.image)
			i := slices.IndexFunc(rep.Findings, func(f Finding) bool {
				f.Text, f.Try = "", ""
				return f == want
			})
			if i < 0 {
				t.Fatalf("got %+v\nwant %+v among them", rep.Findings, want)
			}
			if f := rep.Findings[i]; f.Text == "" || f.Severity != SeverityInfo && f.Try == "" {
				t.Errorf("%+v says too little", f)
			}
			if got, is := rep.Severity(), want.Severity; got != is {
				t.Errorf("severity %s, want %s: %+v", got, is, rep.Findings)
			}
			fixed, err := repaired(d.image, d.tr)
			if err != nil {
				t.Fatalf("%v\n%+v", err, fixed)
			}
		})
	}
}

func newestOf(t *testing.T, fsys vfs.FS, prefix string) string {
	t.Helper()
	names, err := fsys.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	return testDir + "/" + genName("", prefix, last(generations(names, prefix)))
}
