// Package peer puts every store that is compared behind one small interface, each in a file of its
// own. What the bench asks of a store is what a whole job needs: refuse an append whose expected
// revision is not the head's, keep the record so that it is readable as head, as (address, revision)
// and in one feed by position, and answer only when it is on disk.
package peer

import "errors"

var (
	// ErrConflict says that the expected revision is not the head's.
	ErrConflict = errors.New("revision conflict")
	// ErrNotFound says that there is no such address or revision.
	ErrNotFound = errors.New("not found")
)

// Request is one append. The store fills Rev and Pos, or Err when the request was judged inside a
// group. It keeps no reference to Payload.
type Request struct {
	Addr    Address
	Expect  uint64 // the head's revision as the caller knows it; 0 = no record yet
	Payload []byte

	Rev, Pos uint64
	Err      error
}

// Entry is one record of the feed. Its bytes are lent until the callback returns.
type Entry struct {
	Pos, Rev uint64
	Addr     []byte // Address.Key
	Payload  []byte
}

// Store is what is measured. Append, Head and At may be called by many goroutines at once.
type Store interface {
	// Append does one durable append with the store's own concurrency.
	Append(r *Request) error
	// Head returns the newest record of a; the payload belongs to the caller.
	Head(a Address) (rev uint64, payload []byte, err error)
	// At returns one revision of a; the payload belongs to the caller.
	At(a Address, rev uint64) (payload []byte, err error)
	// Feed calls fn for the records behind a position in order, at most limit of them (0 = all),
	// and returns the last position seen.
	Feed(after uint64, limit int, fn func(Entry) error) (last uint64, err error)
	Close() error
}

// Grouper applies many requests with one sync. It is called by one goroutine at a time.
type Grouper interface {
	// ApplyGroup returns when all that were not refused are durable. Refusals go to Request.Err.
	ApplyGroup(rs []*Request) error
}

// Options are what a store may adapt to.
type Options struct {
	Writers int // how many goroutines append; 0 = none
}

// Peer is one entry of the table.
type Peer struct {
	Name     string // as on the command line
	Title    string // as in the table
	Native   bool   // its own Append gains from many writers
	Group    bool   // implements Grouper
	LogOnly  bool   // a log: heads and history are a map of ours in memory, made by reading all of it
	MaxFill  int    // fewer records than asked for where filling would take minutes; 0 = no limit
	Verifies string // what the store checks of the bytes it reads in a drain
	Open     func(dir string, o Options) (Store, error)
}

// All lists the stores in the order of the table. The first is ours.
func All() []Peer {
	return []Peer{
		{Name: "fsstore", Title: "**fsstore**", Native: true, Verifies: "CRC32C of every frame", Open: openFsstore},
		{Name: "bbolt", Title: "bbolt", Native: true, Group: true, Verifies: "nothing", Open: openBolt},
		{Name: "pebble", Title: "Pebble", Native: true, Group: true, Verifies: "checksum of every block", Open: openPebble},
		{Name: "badger", Title: "Badger", Native: true, Group: true, Verifies: "nothing while iterating", Open: openBadger},
		{Name: "sqlite", Title: "SQLite (modernc)", Group: true, Verifies: "nothing", Open: openSQLite},
		{Name: "jetstream", Title: "JetStream file store", Native: true, Group: true, Verifies: "hash of every message", Open: openJetStream},
		{Name: "threefile", Title: "the original's three files", Native: true, MaxFill: 20_000, Verifies: "nothing", Open: openThreeFile},
		{Name: "raftwal", Title: "*raft-wal*", Group: true, LogOnly: true, Verifies: "nothing while reading", Open: openRaftWAL},
		{Name: "etcdwal", Title: "*etcd WAL*", Group: true, LogOnly: true, Verifies: "from memory", Open: openEtcdWAL},
		{Name: "tidwall", Title: "*tidwall/wal*", Group: true, LogOnly: true, Verifies: "nothing", Open: openTidwall},
	}
}

// Find returns the peer of that name.
func Find(name string) (Peer, bool) {
	for _, p := range All() {
		if p.Name == name {
			return p, true
		}
	}
	return Peer{}, false
}
