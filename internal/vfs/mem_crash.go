package vfs

import "math/rand/v2"

// CrashMode says what becomes of the changes nobody synced.
type CrashMode uint8

const (
	// LoseUnsynced drops them all: the harshest image POSIX allows, bar torn writes.
	LoseUnsynced CrashMode = iota
	// KeepUnsynced keeps them all, as after the death of the process alone.
	KeepUnsynced
	// KeepNames keeps creates, renames, removes and directories and drops bytes and sizes: the
	// empty file under its new name.
	KeepNames
	// KeepSizes is KeepNames with the sizes: bytes never synced read as zeros (or garbage), or
	// as the old bytes where there were some.
	KeepSizes
	// KeepRandom throws dice for each change.
	KeepRandom
)

// CrashOptions chooses one of the images a power cut may leave. The zero value loses all that
// was not synced.
type CrashOptions struct {
	Mode CrashMode

	// Choose decides for each uncertain change when it is set; Mode, NameOdds, DataOdds and
	// TornOdds have no say then. It is called in the order of [Mem.Changes], with the Mem locked.
	Choose func(c Change) Fate

	// Rand drives KeepRandom, which panics without it, and the bytes of Garbage.
	Rand *rand.Rand

	NameOdds float64 // of KeepRandom: chance that a change of names survives, 0 to 1
	DataOdds float64 // of KeepRandom: chance that a write or truncate survives whole, 0 to 1
	TornOdds float64 // of KeepRandom: chance that a write that did not survive left parts

	// Unit is the granularity of torn writes in KeepRandom: parts are cut at multiples of this
	// many bytes in the file. 0 picks 1, 512 or 4096 for each write. With 1 the start or the end
	// of a write survives, otherwise any set of units may.
	Unit int

	// Garbage fills what was lost inside a grown file with junk instead of zeros. Holes that
	// were never written stay zeros.
	Garbage bool
}

// Change is one uncertain step: lost, kept or torn by a crash.
type Change struct {
	ID int // its place in [Mem.Changes]
	Op Op  // OpCreate, OpLock (a created lock file), OpMkdir, OpRename, OpRemove, OpWrite, OpTruncate
}

// Fate is what becomes of one change. The zero value loses it.
type Fate struct {
	// Keep lets all of the change survive.
	Keep bool
	// From and To, of a write, let its bytes [From, To) survive when Keep is not set.
	From, To int
	// Size, of a write, lets the size it gave the file survive when Keep is not set.
	Size bool
}

// Changes lists what is uncertain, oldest first. A name is the one the caller used then.
func (m *Mem) Changes() []Change {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var out []Change
	for _, c := range m.pending {
		if !c.sure {
			out = append(out, Change{ID: len(out), Op: c.op})
		}
	}
	return out
}

type nameKey struct {
	dir  *inode
	name string
}

// Crash returns a new file system as it may be found after a power cut now: nothing in it is
// uncertain, no file is open, no lock is held. m goes on unharmed. Chunks nobody changed are
// shared, so an image costs little more than the changes that were applied.
func (m *Mem) Crash(o CrashOptions) *Mem {
	if o.Mode == KeepRandom && o.Choose == nil && o.Rand == nil {
		panic("vfs: CrashOptions.Rand is nil")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn++
	clear(m.blocked)
	out := &Mem{root: m.image(m.root)}
	id := 0
	for _, c := range m.pending {
		fate := Fate{Keep: true}
		torn := false
		if !c.sure {
			if o.Choose != nil {
				fate = o.Choose(Change{ID: id, Op: c.op})
			} else {
				fate, torn = o.decide(c)
			}
			id++
		}
		switch {
		case !c.isData():
			m.crashName(c, fate.Keep)
		case c.op.Kind == OpTruncate:
			if fate.Keep {
				m.image(c.ino).cur.truncate(c.op.Offset)
			}
		case torn:
			o.tear(&m.image(c.ino).cur, c)
		default:
			o.write(&m.image(c.ino).cur, c, fate)
		}
	}
	for _, c := range m.pending {
		if !c.isData() {
			settleImage(c.from, m.turn)
			settleImage(c.to, m.turn)
		}
	}
	return out
}

func settleImage(src *inode, turn uint64) {
	if src != nil && src.copiedTurn == turn {
		src.copied.baseEntries = src.copied.entries
	}
}

// image returns the copy of what certainly survives of ino, the same one all through a Crash.
func (m *Mem) image(ino *inode) *inode {
	if ino.copiedTurn == m.turn {
		return ino.copied
	}
	img := &inode{dir: ino.dir}
	ino.copied, ino.copiedTurn = img, m.turn
	if !ino.dir {
		img.cur = ino.durable().snapshot()
		return img
	}
	if len(ino.baseEntries) > 0 {
		img.entries = make([]dirEntry, len(ino.baseEntries))
		for i, e := range ino.baseEntries {
			img.entries[i] = dirEntry{e.name, m.image(e.ino)}
		}
		img.baseEntries = img.entries
	}
	return img
}

// crashName applies a change of names to the image, or loses it together with all later changes
// of the same names: no file system in use writes a name's history out of order, and a store
// could not defend itself.
func (m *Mem) crashName(c *change, keep bool) {
	from, to := nameKey{c.from, c.fromName}, nameKey{c.to, c.toName}
	if keep && len(m.blocked) > 0 {
		_, lostFrom := m.blocked[from]
		_, lostTo := m.blocked[to]
		keep = !(c.from != nil && lostFrom) && !(c.to != nil && lostTo)
	}
	if !keep {
		if m.blocked == nil {
			m.blocked = make(map[nameKey]struct{})
		}
		if c.from != nil {
			m.blocked[from] = struct{}{}
		}
		if c.to != nil {
			m.blocked[to] = struct{}{}
		}
		return
	}
	if c.from != nil {
		m.image(c.from).set(c.fromName, nil)
	}
	if c.to != nil {
		m.image(c.to).set(c.toName, m.image(c.ino))
	}
}

// decide applies Mode; torn asks for a random tear.
func (o *CrashOptions) decide(c *change) (fate Fate, torn bool) {
	switch o.Mode {
	case KeepUnsynced:
		return Fate{Keep: true}, false
	case KeepNames:
		return Fate{Keep: !c.isData()}, false
	case KeepSizes:
		return Fate{Keep: c.op.Kind != OpWrite, Size: true}, false
	case KeepRandom:
		odds := o.NameOdds
		if c.isData() {
			odds = o.DataOdds
		}
		if o.Rand.Float64() < odds {
			return Fate{Keep: true}, false
		}
		return Fate{}, c.op.Kind == OpWrite && o.Rand.Float64() < o.TornOdds
	}
	return Fate{}, false
}

// write applies what survives of a write.
func (o *CrashOptions) write(img *content, c *change, fate Fate) {
	from, to := max(fate.From, 0), min(fate.To, len(c.data))
	if fate.Keep {
		from, to = 0, len(c.data)
	}
	end := img.size
	if fate.Size {
		end = max(end, c.op.Offset+int64(len(c.data)))
	}
	if from < to {
		end = max(end, c.op.Offset+int64(to))
	}
	o.extend(img, c, end)
	if from < to {
		img.writeAt(c.data[from:to], c.op.Offset+int64(from))
	}
}

// extend grows the image to end on behalf of c. The bytes in between were written once and lost,
// save for the hole c itself left behind the end of the file.
func (o *CrashOptions) extend(img *content, c *change, end int64) {
	old := img.size
	if end <= old {
		return
	}
	img.truncate(end)
	if o.Garbage {
		o.junk(img, old, min(c.before, end))
		o.junk(img, max(old, c.op.Offset), end)
	}
}

func (o *CrashOptions) junk(img *content, from, to int64) {
	if from >= to {
		return
	}
	b := make([]byte, to-from)
	for i := range b {
		b[i] = 0xa5
		if o.Rand != nil {
			b[i] = byte(o.Rand.Uint32())
		}
	}
	img.writeAt(b, from)
}

// tear lets a random part of a write survive, with or without the size it gave the file.
func (o *CrashOptions) tear(img *content, c *change) {
	unit := o.Unit
	if unit <= 0 {
		unit = [...]int{1, 512, 4096}[o.Rand.IntN(3)]
	}
	size := o.Rand.IntN(2) == 0
	if unit == 1 {
		fate := Fate{Size: size, To: len(c.data)}
		if cut := o.Rand.IntN(len(c.data) + 1); o.Rand.IntN(2) == 0 {
			fate.From = cut
		} else {
			fate.To = cut
		}
		o.write(img, c, fate)
		return
	}
	if size {
		o.write(img, c, Fate{Size: true})
	}
	style := o.Rand.IntN(4) // 0: a prefix, else any units
	for at := 0; at < len(c.data); {
		next := min(at+unit-int((c.op.Offset+int64(at))%int64(unit)), len(c.data))
		if o.Rand.IntN(2) == 0 {
			o.write(img, c, Fate{From: at, To: next})
		} else if style == 0 {
			return
		}
		at = next
	}
}
