package fsstore

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

const (
	leastSoft  = 256 << 10       // appends are refused below so many free bytes, on the smallest disk
	leastLook  = 64 << 10        // appended bytes between two looks at the free space, at least
	mostLook   = 64 << 20        // and at most
	lookIdle   = 5 * time.Second // between two looks while there is room
	lookFull   = time.Second     // and while there is none
	fullsPause = 2 * time.Second // after the disk refused a write, before writes are tried again
)

// space is what is known of the room on the disk, and the ladder that follows from it:
//
//  1. While less than soft is free, appends are refused before they cost anything.
//  2. A group that the disk has no room for is refused with nothing written; so are the appends behind it.
//  3. Below a quarter of soft, after 2, and for who calls makeRoom, the spare segment and the reserve are
//     given back. Prunes, compaction, checkpoints, cursors and logs live on that.
//  4. Once there is room for the reserve above soft it is made again, and appends go on.
//
// Only the maintainer looks, and it alone touches the reserve, but for a leader whose prune met a full
// disk and compaction. Nobody who answers a question waits for either.
type space struct {
	look  func() (avail, total int64, err error) // nil = nobody can tell
	want  int64                                  // size of the reserve; 0 = there shall be none
	pause time.Duration                          // fullsPause

	credit atomic.Int64 // bytes that may be appended before the next look
	due    atomic.Bool  // look at the next turn of the maintainer
	full   atomic.Bool  // appends are refused
	free   atomic.Int64 // as seen last, -1 = not known
	have   atomic.Int64 // size of the reserve, for Stats
	claims atomic.Int32 // calls of makeRoom that are not done: the room is theirs
	hit    atomic.Bool  // a write was refused since the last look
	last   atomic.Int64 // when that was, UTC nanoseconds

	mu   sync.Mutex // guards following and the reserve; held over the disk, so nobody waits for it who must answer
	soft int64
	seen bool // the size of the reserve was read
}

// resting says that the disk refused a write a moment ago.
func (p *space) resting() bool { return time.Since(time.Unix(0, p.last.Load())) < p.pause }

// freeTeller is a file system that can say how much room it has. The operating system's is asked directly.
type freeTeller interface {
	FreeBytes(dir string) (avail, total int64, err error)
}

// startSpace finds out who can tell the free space and how large the reserve shall be.
func (s *Store) startSpace() {
	p := &s.space
	p.pause = fullsPause
	p.free.Store(-1)
	if t, ok := s.fs.(freeTeller); ok {
		p.look = func() (int64, int64, error) { return t.FreeBytes(s.dir) }
	} else if s.opts.FS == nil {
		p.look = func() (int64, int64, error) { return vfs.FreeBytes(s.dir) }
	}
	total := int64(0)
	if p.look != nil {
		avail, all, err := p.look()
		if err != nil {
			s.log.Debug("free space is not known", "store", s.dir, "error", err)
			p.look = nil
		} else {
			total = all
			p.free.Store(avail)
			p.soft = s.softLimit(total)
			p.setCredit(avail)
			// A disk that is full already is found out before the first append.
			s.setFull(avail < p.soft)
			p.due.Store(avail < p.soft)
		}
	}
	switch {
	case s.opts.Reserve > 0:
		p.want = s.opts.Reserve
	case s.opts.Reserve == 0 && p.look != nil:
		p.want = min(DefaultReserve, total/64) &^ 4095
	}
}

// softLimit is what others than appends may need: a segment that compaction writes, and a checkpoint. On a
// small disk it is less, because it would cost too much of it.
func (s *Store) softLimit(total int64) int64 {
	need := s.opts.SegmentSize + 2*s.upkeep.ckpBytes.Load()
	return max(min(need, total/32), min(leastSoft, total/8))
}

// managed says whether anything is known or kept; otherwise each append finds out for itself.
func (p *space) managed() bool { return p.look != nil || p.want > 0 }

func (p *space) setCredit(avail int64) {
	p.credit.Store(min(mostLook, max(leastLook, (avail-p.soft)/2)))
}

// spend notes bytes written to the log and says whether it is time to look.
func (p *space) spend(n int64) {
	if p.look != nil && p.credit.Add(-n) < 0 {
		p.due.Store(true)
	}
}

// interval is how long the maintainer may sleep before it looks again; 0 = for ever.
func (p *space) interval() time.Duration {
	switch {
	case !p.managed():
		return 0
	case p.full.Load():
		return lookFull
	}
	return lookIdle
}

// refusal is what an append gets while the disk is full.
func (s *Store) refusal() error {
	if free := s.space.free.Load(); free >= 0 {
		return fmt.Errorf("%w: the disk of %s has %d bytes free, which are kept for prunes, compaction and cursors", statesman.ErrFull, s.dir, free)
	}
	return fmt.Errorf("%w: the disk of %s refused the last write", statesman.ErrFull, s.dir)
}

// metFull is told that the disk had no room for a group.
func (s *Store) metFull() {
	p := &s.space
	if !p.managed() {
		return
	}
	s.setFull(true)
	p.last.Store(time.Now().UnixNano())
	p.hit.Store(true)
	p.due.Store(true)
	s.upkeep.nudge(s)
}

// watchSpace looks at the free space and takes the step of the ladder that it asks for. It says whether
// there is more to do once the store is idle.
func (s *Store) watchSpace() (later bool) {
	p := &s.space
	if !p.managed() || !p.due.Swap(false) && p.credit.Load() > 0 && !p.full.Load() && p.have.Load() >= p.want {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.measureReserveLocked()
	avail := s.availLocked()
	hit := p.hit.Swap(false)
	missing := p.want - p.have.Load()
	switch {
	case avail < p.soft/4 || hit:
		s.setFull(true)
		s.giveBackLocked()
	case avail < p.soft:
		s.setFull(true)
		s.dropSpare()
	case p.claims.Load() > 0 || p.resting():
	case missing > 0:
		if avail-missing < p.soft+p.soft/4 {
			break // what is there stays open for appends; what was refused waits for more room
		}
		idle, used := s.idleNow()
		if p.full.Load() || used && idle {
			if s.growReserveLocked() {
				s.setFull(false)
			}
		}
		later = used && !idle
	case avail >= p.soft+p.soft/4:
		s.setFull(false)
	}
	avail = s.availLocked()
	p.setCredit(avail)
	return later
}

// availLocked is how much is free; where nobody can tell that is taken as enough.
func (s *Store) availLocked() int64 {
	p := &s.space
	if p.look == nil {
		return math.MaxInt64
	}
	avail, total, err := p.look()
	if err != nil {
		p.free.Store(-1)
		return math.MaxInt64
	}
	p.soft = s.softLimit(total)
	p.free.Store(avail)
	return avail
}

// idleNow says that the disk has nothing better to do than a reserve, and whether the store was written to
// since it was opened: who writes nothing needs none.
func (s *Store) idleNow() (idle, used bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.busyLocked(), s.fill.total > 0
}

func (s *Store) setFull(full bool) {
	p := &s.space
	switch was := p.full.Swap(full); {
	case full && !was:
		s.log.Warn("the disk is full: appends are refused", "store", s.dir, "free", p.free.Load(), "hint", hintFull)
	case was && !full:
		s.log.Info("there is room again: appends go on", "store", s.dir, "free", p.free.Load())
	}
}

// withReserve runs f once more after err, a full disk, if something was given back for it.
func (s *Store) withReserve(err error, f func() error) error {
	if !isFull(err) {
		return err
	}
	s.space.mu.Lock()
	freed := s.giveBackLocked()
	s.space.mu.Unlock()
	if !freed {
		return err
	}
	s.metFull()
	return f()
}

// makeRoom is for work that frees space in the end, before it writes need bytes: compaction calls it
// before it makes a file. Appends are refused until done is called if there is not more than that, and the
// spare segment and the reserve are given back if the disk has less. Both come back by themselves. The error
// matches ErrFull when there is too little all the same; then nothing is to be done, and done is nil.
// Where nobody can tell the free space it never fails. Store.mu must not be held.
func (s *Store) makeRoom(need int64) (done func(), err error) {
	p := &s.space
	p.mu.Lock()
	defer p.mu.Unlock()
	s.measureReserveLocked()
	avail := s.availLocked()
	if p.managed() && avail-need < p.soft {
		s.setFull(true)
	}
	if avail < need {
		s.giveBackLocked()
		if avail = s.availLocked(); avail < need {
			p.due.Store(true)
			return nil, fmt.Errorf("%w: %d bytes are needed on the disk of %s, %d are free", statesman.ErrFull, need, s.dir, avail)
		}
	}
	p.claims.Add(1)
	var once sync.Once
	return func() {
		once.Do(func() {
			p.claims.Add(-1)
			p.due.Store(true)
			s.upkeep.nudge(s)
		})
	}, nil
}
