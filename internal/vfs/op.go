package vfs

import "fmt"

// OpKind names a call on an [FS] or a [File].
type OpKind uint8

// The calls a rule or a hook can see. OpCreate is OpenFile with os.O_CREATE, whether or not the
// file existed; OpOpen is OpenFile without it. Closing a lock is an OpClose too.
const (
	OpOpen OpKind = iota
	OpCreate
	OpRead
	OpWrite
	OpSync
	OpTruncate
	OpRename
	OpRemove
	OpMkdir
	OpList
	OpSyncDir
	OpLock
	OpClose
	OpSize
)

var opNames = [...]string{"open", "create", "read", "write", "sync", "truncate", "rename",
	"remove", "mkdir", "list", "syncdir", "lock", "close", "size"}

// String returns the lower-case name of the call.
func (k OpKind) String() string {
	if int(k) < len(opNames) {
		return opNames[k]
	}
	return fmt.Sprintf("op(%d)", uint8(k))
}

// Op describes one call before it is made.
type Op struct {
	Index   int64  // 0 for the first call the observer saw
	Kind    OpKind // which call
	Name    string // the file, directory or lock, as the caller wrote it
	NewName string // of OpRename: the new name
	Offset  int64  // of OpRead and OpWrite; of OpTruncate: the new size
	Len     int    // of OpRead and OpWrite
}

// String returns one line for logs and test failures.
func (o Op) String() string {
	s := fmt.Sprintf("#%d %s %q", o.Index, o.Kind, o.Name)
	switch o.Kind {
	case OpRename:
		s += fmt.Sprintf(" -> %q", o.NewName)
	case OpRead, OpWrite:
		s += fmt.Sprintf(" [%d,+%d)", o.Offset, o.Len)
	case OpTruncate:
		s += fmt.Sprintf(" to %d", o.Offset)
	}
	return s
}
