// Package tiered puts a fast store in front of the store that counts: hot over cold.
//
// Cold is authoritative. Every write goes there first, and what cold accepted is then imported
// into hot; that import can fail without failing the call. Reads of a head are answered as
// [ReadMode] says. Everything else, history, feed, catalog, capture, batches, hints and identity,
// is cold's own, so positions, cursors and lineage are cold's as well. The tier answers for itself
// what it can do: exact imports are refused, since they would write past cold, and how far hot is
// behind is its own to tell.
//
// # Reading from hot without a doubt
//
// When cold is statesman.Exclusive, no other process writes to it, and in this process nobody but
// the tier may. The tier then knows cold's head of an address by its numbers: it notes revision
// and position of what it wrote or read, and whether hot took it. A head that hot returns with
// exactly these numbers is cold's head, and no disk is needed to say so. While a write to the
// address is under way, and after one whose outcome is unknown, nothing is noted and cold is asked.
// Hot may forget or refuse what it likes; it only costs the shortcut.
//
// # What it does not promise
//
// Hot is a cache: the tier never writes to it alone and never trusts it alone, unless PreferHot or
// ServeHotWhenColdUnavailable says so. A hot store that hangs holds up its callers, since an import
// has no deadline of its own; give it one. Somebody who writes to an exclusive cold store past the
// tier makes its answers stale.
package tiered
