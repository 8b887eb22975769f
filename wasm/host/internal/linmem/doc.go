// Package linmem holds the linear memory of a guest outside the Go heap: the address range is
// reserved at its greatest length, pages are given by the system when they are first touched, and
// all of it goes back at Free. Growing therefore copies nothing and the collector never sees it.
//
// Where the system offers no such mapping (see the files' build tags) the memory is a slice that
// is copied when it grows.
//
// # What it does not promise
//
// Nothing here is safe for concurrent use, and a slice from Reallocate is gone after Free: who
// frees the memory of a running guest ends the process. Only the owner of an instance closes it.
package linmem
