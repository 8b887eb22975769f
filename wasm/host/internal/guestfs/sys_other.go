//go:build !unix

package guestfs

import "os"

const openFlags = 0

// syncDir has nothing to do: the system writes directory entries with the file and has no call
// for a directory.
func syncDir(*os.Root, string) error { return nil }
