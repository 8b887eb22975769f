package outbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/statesman-dev/statesman"
)

// FileCursors is a CursorStore of one small JSON file per outbox:
//
//	<lower-case hex SHA-256 of the id>.cursor
//	{"outboxId":"upstream","lineage":"<32 hex digits>","position":42,"start":0}
//
// A write replaces the file: temporary file, fsync, rename, fsync of the directory. After a power
// cut either the old or the new bookmark is there. One process at a time may use a directory; the
// lock of the store beside it sees to that.
type FileCursors struct {
	dir string
	mu  sync.Mutex // guards the files: read, compare and replace are one step
}

// OpenFileCursors returns the cursors in dir, which is made with mode 0700 if it is missing.
func OpenFileCursors(dir string) (*FileCursors, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open cursors: %w", err)
	}
	// What a crash between create and rename left. A pattern without brackets is never malformed.
	left, _ := filepath.Glob(filepath.Join(dir, "*.cursor.*.tmp"))
	for _, tmp := range left {
		if err := os.Remove(tmp); err != nil {
			return nil, fmt.Errorf("open cursors: %w", err)
		}
	}
	return &FileCursors{dir: dir}, nil
}

// Path returns the file that holds the bookmark of an outbox.
func (f *FileCursors) Path(id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(f.dir, hex.EncodeToString(sum[:])+".cursor")
}

// Read implements CursorStore.
func (f *FileCursors) Read(ctx context.Context, id string) (Bookmark, bool, error) {
	if err := checkCursorCall(ctx, id); err != nil {
		return Bookmark{}, false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.readLocked(id)
}

// Write implements CursorStore.
func (f *FileCursors) Write(ctx context.Context, id string, b Bookmark) error {
	if err := checkBookmark(ctx, id, b); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old, ok, err := f.readLocked(id)
	if err != nil {
		return err
	}
	if ok {
		if forward, err := old.precedes(id, b); err != nil || !forward {
			return err
		}
	}
	return f.replaceLocked(id, b)
}

// Rewind implements CursorStore.
func (f *FileCursors) Rewind(ctx context.Context, id string, b Bookmark) error {
	if err := checkBookmark(ctx, id, b); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replaceLocked(id, b)
}

func (f *FileCursors) readLocked(id string) (Bookmark, bool, error) {
	path := f.Path(id)
	text, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Bookmark{}, false, nil
	}
	if err != nil {
		return Bookmark{}, false, fmt.Errorf("read cursor of outbox %q: %w", id, err)
	}
	b, err := decodeBookmark(id, text)
	if err != nil {
		return Bookmark{}, false, &statesman.Error{Op: "read cursor of outbox", Store: id,
			Err:  fmt.Errorf("%w: file %s: %w", statesman.ErrCorrupt, path, err),
			Hint: "move " + path + " away and resume: the outbox then begins again by its start policy, and repeats what was shipped"}
	}
	return b, true, nil
}

// maxCursorFile bounds what is read of a file that may be anything.
const maxCursorFile = 4 << 10

func readSmall(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxCursorFile+1))
}

func (f *FileCursors) replaceLocked(id string, b Bookmark) error {
	if err := replaceFile(f.Path(id), encodeBookmark(id, b)); err != nil {
		return fmt.Errorf("write cursor of outbox %q: %w", id, err)
	}
	return nil
}

// cursorFile is the file's JSON. Pointers tell a missing number from 0.
type cursorFile struct {
	OutboxID string             `json:"outboxId"`
	Lineage  *statesman.Lineage `json:"lineage"`
	Position *int64             `json:"position"`
	Start    int64              `json:"start"`
}

func encodeBookmark(id string, b Bookmark) []byte {
	// Marshalling plain fields cannot fail.
	text, _ := json.Marshal(cursorFile{OutboxID: id, Lineage: &b.Cursor.Lineage, Position: &b.Cursor.Position, Start: b.Start})
	return append(text, '\n')
}

func decodeBookmark(id string, text []byte) (Bookmark, error) {
	if len(text) > maxCursorFile {
		return Bookmark{}, fmt.Errorf("more than %d bytes", maxCursorFile)
	}
	var c cursorFile
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&c); err != nil {
		return Bookmark{}, fmt.Errorf("not a cursor: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Bookmark{}, errors.New("not a cursor: bytes behind the object")
	}
	switch {
	case c.OutboxID != id:
		return Bookmark{}, fmt.Errorf("it belongs to outbox %q", c.OutboxID)
	case c.Lineage == nil || c.Position == nil:
		return Bookmark{}, errors.New("lineage or position is missing")
	}
	b := Bookmark{Cursor: statesman.Cursor{Lineage: *c.Lineage, Position: *c.Position}, Start: c.Start}
	return b, b.validate()
}
