// Package fsstore is the durable store: an append-only log that holds the records, and an index in
// memory that says where. There is one commit point, so there is no window between a record and
// its bookkeeping: every writer who waits shares one write and one sync.
//
//	DIR/
//	  LOCK                 the system's lock, held while the store is open; never removed
//	  manifest-<gen>       who the store is and which segments it has; two are kept
//	  checkpoint-<gen>     the index at one moment; derived; two are kept
//	  log/<base>-<id>.seg  a segment; the last one is appended to
//	  log/<base>-<id>.idx  where the revisions of a sealed segment are; derived
//	  log/*.tmp            being made; removed when the store is opened
//	  reserve              bytes that mean nothing: room for the full-disk ladder; derived
//	  quarantine/          bytes that were set aside; nothing here is removed by this package
//
// Derived files may be deleted at any time while the store is closed. All numbers are
// little-endian, all checksums CRC32C. base is a position in 19 digits, id a random 64-bit number
// in 16 hex digits.
//
// # Segment
//
//	off size
//	  0    8 magic "STMNSEG1"
//	  8    2 format 1
//	 10    2 flags: 1 = compacted, positions have holes on purpose
//	 12    4 header length 128
//	 16   16 lineage
//	 32    8 segment id
//	 40    8 sequence: 1, 2, 3 … of the store
//	 48    8 base: the next position to give when it was made
//	 56    8 owner epoch
//	 64    8 id of the segment before, 0 = none
//	 72    8 where that one ends: every byte up to there was durable
//	 80    8 created, UTC nanoseconds
//	 88   36 zero
//	124    4 checksum of the bytes before
//
// Behind it are groups, one for each sync: frames, then a commit frame. A frame begins at a
// multiple of 8 and is a multiple of 8 long:
//
//	  0    4 checksum of the rest of the frame, seeded with the checksum of the segment id
//	  4    4 length with these 8 bytes; the low three bits are the kind
//	  8    … by kind
//
//	1 record   a flat record (internal/wire), at the next position, the next revision
//	2 import   a flat record above every position, and every revision of its address
//	3 stray    8 retained, 8 bytes: of its address afterwards; 24 a flat record, imported out of order
//	4 prune    8 floor, 8 retained, 8 bytes, 4 key length, 4 count, count × (8 first, 8 last), key
//	5 gap      8 first, 8 last position declared lost, 8 zero
//	6 commit   4 count of frames, 4 checksum of their checksums, 8 synced through, 8 next position
//	           before, 8 last position after, 4 owner epoch, 4 zero
//
// Zeros are no frame. The seed makes bytes of another segment, an older copy, or a payload that looks
// like a frame fail. "synced through" is where the group begins: it was written after everything
// before had been synced, and a copy of a group elsewhere does not verify. A prune frame is all that
// is known of the removed revisions of its address (those below floor, and the spans), not what one
// call removed: replaying from anywhere ends in the same state.
//
// A compacted segment stands for neighbouring ones. It has their retained records as imports, ascending by
// position; behind them, for each address that had such frames, the newest prune, then the records that
// stay out of order, with totals as of the end of those segments; then gaps. The positions of a group
// run from "next position before" to "last position after", holes included, so a group without
// frames has a meaning there. A prune frame is left out where a later one of its address is known to be in
// the log. In order means above every in-order revision before; dead records out of order in a segment
// before do not count, and one of the same revision is replaced.
//
// # Manifest
//
//	 0    8 magic "STMNMAN1"
//	 8    2 format 1, 6 zero… 12 4 size of the file
//	16    8 generation     24 16 lineage     40 8 owner epoch     48 8 created
//	56    4 name length    60 4 segments     64 16 zero
//	80    … name, zeros to a multiple of 8
//	      for each segment: 8 id, 8 sequence, 8 base, 8 last position, 8 end, 8 owner epoch,
//	        8 flags (1 sealed, 2 has sha256, 4 compacted), 8 zero, 32 sha256 of [0, end)
//	      4 zero, 4 checksum of everything before
//
// The owner epoch is the generation that an opening writes, and generations never repeat, so it grows
// with every opening, whatever was lost. Segments made after the newest manifest are found by their
// headers: base not below and sequence above the last listed one's, same lineage, not compacted.
//
// # Index file and checkpoint
//
//	idx  0 8 magic "STMNIDX1" · 8 2 format · 16 16 lineage · 32 8 segment id · 40 8 end
//	     48 4 blocks · 52 4 list · 56 4 checksum of the blocks · 60 4 of the list · 68 4 of the header
//	     72 blocks × (8 position, 8 offset), one for every 64 KiB or more
//	     list × (4 offset / 8), every in-order record, run after run of each address
//	ckp  0 8 magic "STMNCKP1" · 8 2 format · 16 8 size · 24 8 generation · 32 16 lineage · 48 8 epoch
//	     64 varints: next position, doubt, segments, gaps, damages, heads; see checkpoint.go
//	     … 4 checksum of everything before
//
// # What is written when, and what a crash there leaves
//
//   - Group: one write at the end of the log, one sync, then the answers. Before the sync is through
//     any part of it may be on disk: a torn tail, or the whole group, which then is there although
//     nobody was told.
//   - Zeros ahead of the writer: only behind the end of the log. Zeros, or nothing.
//   - Next segment: header into a temporary file, sync, rename, sync of log/, then the first group. A
//     temporary file that opening removes, or a segment without groups, which goes on being used.
//   - Cutting the zeros behind a sealed segment, and at Close: the end is known from the next
//     segment's header or the log itself. Zeros, or not.
//   - Index file: temporary file, rename, no sync. Missing or not verifying: the segment is scanned
//     when somebody asks.
//   - Checkpoint, manifest: a new file under the next number, sync, sync of DIR, then the oldest is
//     removed. The new one does not verify or is missing: the one before counts. Segments newer than
//     it are found by their headers.
//   - Compaction: the new segment into a temporary file, synced, renamed, log/ synced; a manifest that lists it
//     instead of the old ones; memory; a second such manifest; only then the old files are removed, and
//     a checkpoint is written. Before the first manifest: a file that no manifest lists. Behind it: old
//     files that none lists. Opening removes both once its own manifest is durable, unless a newer
//     manifest is there that cannot be read, or something is missing. A checkpoint of other segments
//     does not fit and is not used. If writing the manifest fails it is taken back; if that fails too, both
//     sets stay until the next opening.
//   - Torn tail: copy in quarantine/ and synced, log cut and synced. Done again from the beginning; the
//     copy has the same name.
//   - Rewriting the last group when the store is opened: the same bytes in the same place.
//   - Reserve: written in steps, each synced, and a sync of DIR; given back by removing it, without a sync. A
//     shorter one, none, or the whole again: it is completed when the store is idle.
//   - Lock, LOCK's text: nothing depends on its content.
//   - Making the store: directories, lock, manifest. Without a manifest that verifies and without
//     segments it is made anew.
//
// # Recovery
//
//  1. Take the lock. Read the newest manifest that verifies; find newer segments.
//  2. Read the newest checkpoint that verifies and fits the segments; else begin with an empty index.
//  3. Read on from there, group by group. Where no whole group begins:
//     all zeros: the log ends there.
//     No later commit of this segment tells of a sync behind that place, and no segment follows: a
//     torn tail. It goes to quarantine and is cut.
//     Otherwise it is damage of what was acknowledged: see below.
//  4. Write a manifest with a new owner epoch. Sync log/. Write the last group again and sync it: after
//     a sync that failed, bytes may be readable that are not on disk.
//
// # Damage
//
// Every read checks the frame's checksum and that it is what was looked for; what does not verify is
// ErrCorrupt, never other bytes. Damage found in the log when it is opened is not repaired: the frames
// around it are used, the positions are noted, and appends go on in a new segment. An address whose newest
// revision may lie in the damage, because neither checkpoint nor the revisions behind tell otherwise,
// answers ErrCorrupt until it is repaired; so does an address that nothing is known of. The feed ends at
// the damage with a [*DamageError]. If a prune frame is lost, what it removed comes back until it is
// pruned again.
//
// While damage is found and not declared, nothing is compacted: the gaps in the revisions behind it tell
// whose records are lost. A segment that turns out damaged while it is read for compaction is left alone.
//
// # Failing disk
//
// The first write or sync of the log that fails for any reason but a full disk ends writing: whoever
// waited gets ErrUnknown, later writes too, reads go on. No sync is tried a second time. Opening the
// store again goes through recovery.
//
//	what failed                                            ends writing
//	write or sync of a group; cutting a refused one off    yes: it is about records
//	sync of zeros ahead or behind a sealed segment         yes: the same file, so it may be about records
//	write, sync or name of the next segment                yes: the group behind it could be lost with it
//	opening the next segment                               no: nothing was written; that group is refused
//	write or sync of a checkpoint or manifest              no: it does not count before its sync, the ones
//	                                                       before stay, and the log tells of itself
//	index file, spare segment, reserve                     no: derived, or of no content
//
// Too many open files, missing permission, a read-only mount and the like say nothing about the bytes:
// they are told as what they are, never as damage, and what was asked for succeeds once they have
// passed. At the limit of open files those that nobody reads are closed first.
//
// A disk that hangs holds up writes and Close. Nothing that answers a question without the disk waits
// with them, and reads wait only if their own does. The queue behind the write in flight has a bound of a
// mebibyte and one large write. Whoever waits may give up with a context: ErrUnknown for an append that is
// queued, the context's error alone for one that found no place. The one caller whose goroutine is
// writing cannot, and neither can a prune or import, because the next one builds on its outcome.
//
// # Full disk
//
// The ladder, where the system can tell the free space or a reserve is kept:
//
//  1. While less than a segment and two checkpoints is free, or a 32nd of a smaller disk, appends and
//     imports are ErrFull with nothing written. The space is looked at as the log grows, and every five
//     seconds, not by each append. Prunes go on.
//  2. A group that the disk or a quota has no room for is cut off again: ErrFull, nothing written.
//  3. After 2, below a quarter of 1, for a prune that met 2, for compaction and to open the store: the spare
//     segment and the reserve are removed. Prunes, checkpoints, manifests, compaction, and the cursors and
//     logs of others live on that.
//  4. Once the reserve fits again with 1 left over it is made, and appends go on, in the same
//     process and within a second or two of the space being freed.
//
// What others do to the disk between two looks, nobody can forbid: then 2 and 3 are what counts.
//
// # What it does not promise
//
// Nothing on network file systems, and on a disk whose flush lies. Damage of the very last group that
// no checkpoint covers cannot be told from a write nobody was told of. Only one process writes; readers
// in other processes ([Options].ReadOnly) see a consistent beginning of the log and follow it.
// Checksums find accidents, not forgery.
package fsstore
