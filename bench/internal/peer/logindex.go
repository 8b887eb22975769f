package peer

import "sync"

// logIndex makes a whole store of a plain log: positions are log indexes from 1 on, and a map in
// memory says which belong to an address. It is what a program that chose such a log would write,
// and it is rebuilt by reading everything when the log is opened. Nothing of it is on disk.
type logIndex struct {
	log     indexedLog
	writing sync.Mutex // held during a group, taken before mu

	mu        sync.RWMutex // guards following
	positions map[string][]uint64
	last      uint64
}

// indexedLog is the part that differs between the logs.
type indexedLog interface {
	// write appends the records at first, first+1, … with one sync.
	write(first uint64, records [][]byte) error
	// read returns the record at pos; the bytes are not changed later.
	read(pos uint64) ([]byte, error)
	close() error
}

func newLogIndex(log indexedLog) *logIndex {
	return &logIndex{log: log, positions: map[string][]uint64{}}
}

// load notes a record found when the log was opened.
func (x *logIndex) load(pos uint64, record []byte) {
	_, addr, _ := splitRecord(record)
	x.positions[string(addr)] = append(x.positions[string(addr)], pos)
	x.last = pos
}

func (x *logIndex) Append(r *Request) error {
	if err := x.ApplyGroup([]*Request{r}); err != nil {
		return err
	}
	return r.Err
}

// ApplyGroup keeps readers out only while it notes what was written, not during the sync.
func (x *logIndex) ApplyGroup(rs []*Request) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.RLock()
	next := x.last + 1
	records := make([][]byte, 0, len(rs))
	within := make(map[string]uint64, len(rs)) // heads of this group
	for _, r := range rs {
		head, ok := within[r.Addr.Key]
		if !ok {
			head = uint64(len(x.positions[r.Addr.Key]))
		}
		if head != r.Expect {
			r.Err = ErrConflict
			continue
		}
		r.Rev, r.Pos = head+1, next+uint64(len(records))
		within[r.Addr.Key] = r.Rev
		records = append(records, newRecord(r.Rev, r.Addr.Key, r.Payload))
	}
	x.mu.RUnlock()
	if len(records) == 0 {
		return nil
	}
	if err := x.log.write(next, records); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range rs {
		if r.Err == nil {
			x.positions[r.Addr.Key] = append(x.positions[r.Addr.Key], r.Pos)
			x.last = r.Pos
		}
	}
	return nil
}

func (x *logIndex) Head(a Address) (uint64, []byte, error) {
	x.mu.RLock()
	p := x.positions[a.Key]
	x.mu.RUnlock()
	if len(p) == 0 {
		return 0, nil, ErrNotFound
	}
	payload, err := x.payload(p[len(p)-1])
	return uint64(len(p)), payload, err
}

func (x *logIndex) At(a Address, rev uint64) ([]byte, error) {
	x.mu.RLock()
	p := x.positions[a.Key]
	x.mu.RUnlock()
	if rev == 0 || rev > uint64(len(p)) {
		return nil, ErrNotFound
	}
	return x.payload(p[rev-1])
}

func (x *logIndex) payload(pos uint64) ([]byte, error) {
	b, err := x.log.read(pos)
	if err != nil {
		return nil, err
	}
	_, _, p := splitRecord(b)
	return p, nil
}

func (x *logIndex) Feed(after uint64, limit int, fn func(Entry) error) (uint64, error) {
	x.mu.RLock()
	last := x.last
	x.mu.RUnlock()
	for n := 0; after < last && (limit == 0 || n < limit); n++ {
		b, err := x.log.read(after + 1)
		if err != nil {
			return after, err
		}
		if err := fn(recordEntry(after+1, b)); err != nil {
			return after, err
		}
		after++
	}
	return after, nil
}

func (x *logIndex) Close() error { return x.log.close() }
