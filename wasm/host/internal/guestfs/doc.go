// Package guestfs gives a guest files below the directories that the operator granted, and
// nothing else: every name is resolved by an os.Root, so neither ".." nor a symbolic link, made
// before or meanwhile, leads outside.
//
// A path is "grant/rest/of/path": the first element is the name of a grant, the rest uses forward
// slashes on every system. Only regular files are opened.
//
// # What it does not promise
//
// No quota on bytes, no locks between plugins that share a directory, and a slow disk blocks the
// call that waits for it: no deadline interrupts an fsync.
package guestfs
