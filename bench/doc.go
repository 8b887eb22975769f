//go:build linux

// Command bench does the same durable work on this store and on others, and prints one set of
// tables and the aims that were set beforehand, each met or not.
//
// # What is measured
//
// One append judges a condition on the head's revision, keeps 1 KiB readable as head, as (address,
// revision) and in one feed by position, and is answered after the sync. Writers have addresses of
// their own out of 1,000 and wait for one append before they make the next. Beside it: appends with
// every sync made longer; bytes written and disk held; draining the feed, warm and from a dropped
// page cache; head and history reads; reopening after SIGKILL; memory.
//
// Every measurement runs in a process of its own, of this same binary. Rounds go over all stores in
// an order that is shuffled anew each time, and every figure is the median of its rounds.
//
// # Why it is fair
//
// Every store syncs before it answers and runs in the best configuration we know; internal/peer says
// for each what that is. Where a store groups writers itself ("native") and a committer in front of
// it can do so too ("gc"), both run and the better counts. The committer gathers writers as ours
// does, so our way of sharing a sync is lent to everybody. Layouts keep the record once and write no
// tree that the store can do without. Ours runs with no option set.
//
// A drain hands over borrowed bytes everywhere and checks order, count, and that each payload names
// its address. Checksums are left to the stores: ours verifies every frame, bbolt and SQLite verify
// nothing, which is to their advantage; a table says so.
//
// Logs (raft-wal, etcd's WAL, tidwall/wal) do not do the whole job: heads and history are a map in
// memory that exists only while the process does. They are shown apart and no aim refers to them.
// JetStream's revisions are stream sequences. The original's three-file layout is written in Go and
// kinder than the original; it is filled with 20,000 records, since more would take minutes.
//
// # Slow syncs
//
// internal/slowsync holds the sync calls of a process back from outside, with a seccomp filter that
// this process listens to. Where the kernel refuses that, the series is reported as not run.
//
// # What is not measured
//
// Other machines, file systems and record sizes; what a crash loses (that is the torture plan's
// work); many processes; compaction. Bytes written count what the kernel was given by the process
// until the last append was answered: compaction that a killed store still owed is in its favour.
// Figures from a busy machine mean nothing; ratios of one run say more than the figures.
package main
