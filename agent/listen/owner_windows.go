package listen

import (
	"errors"

	"golang.org/x/sys/windows"
)

// checkOwner: a profile directory's access list keeps other users out on Windows.
func checkOwner(string) error { return nil }

// refused says whether a dial failed because nobody listens.
func refused(err error) bool {
	return errors.Is(err, windows.WSAECONNREFUSED) || errors.Is(err, windows.ERROR_FILE_NOT_FOUND)
}
