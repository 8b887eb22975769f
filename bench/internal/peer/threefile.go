package peer

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// threeFile is the layout of the .NET library that this agent replaces, in Go: for each append a
// history file (temporary name, sync, rename) and a line in the change log (sync), both under one
// lock of the whole store, and then the head file, outside the lock and without a sync.
//
// It is kinder than the original: records are binary, the heads' revisions are kept in memory
// instead of being read back for each append, and the last byte of the log is not read again.
type threeFile struct {
	dir string
	log *os.File

	mu    sync.Mutex // guards following
	heads map[string]uint64
	lines []logLine // line n is position n+1
}

type logLine struct {
	addr string
	rev  uint64
}

func openThreeFile(dir string, _ Options) (Store, error) {
	f, err := os.OpenFile(filepath.Join(dir, "_changes.log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	s := &threeFile{dir: dir, log: f, heads: map[string]uint64{}}
	if err := s.readLog(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// readLog reads all lines. A last line without its end was never acknowledged.
func (s *threeFile) readLog() error {
	known := map[string]string{} // one copy of each address
	r := bufio.NewReaderSize(s.log, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f := bytes.Split(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"))
		if len(f) != 3 {
			return fmt.Errorf("line %d of the change log is malformed", len(s.lines)+1)
		}
		rev, err := strconv.ParseUint(string(f[2]), 10, 64)
		if err != nil {
			return fmt.Errorf("line %d of the change log: %w", len(s.lines)+1, err)
		}
		addr, ok := known[string(f[1])]
		if !ok {
			addr = string(f[1])
			known[addr] = addr
		}
		s.lines = append(s.lines, logLine{addr, rev})
		s.heads[addr] = rev
	}
}

func (s *threeFile) folder(addr string) string {
	sum := sha256.Sum256([]byte(addr))
	name := hex.EncodeToString(sum[:])
	return filepath.Join(s.dir, name[:2], name)
}

func (s *threeFile) historyFile(addr string, rev uint64) string {
	return filepath.Join(s.folder(addr), "history", fmt.Sprintf("%020d.rec", rev))
}

func (s *threeFile) Append(r *Request) error {
	record, err := s.appendLogged(r)
	if err != nil {
		return err
	}
	head := filepath.Join(s.folder(r.Addr.Key), "head.rec")
	temp := fmt.Sprintf("%s.%d.tmp", head, r.Pos)
	if err := os.WriteFile(temp, record, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, head)
}

func (s *threeFile) appendLogged(r *Request) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heads[r.Addr.Key] != r.Expect {
		return nil, ErrConflict
	}
	rev, pos := r.Expect+1, uint64(len(s.lines))+1
	name := s.historyFile(r.Addr.Key, rev)
	if r.Expect == 0 {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return nil, err
		}
	}
	record := newRecord(rev, r.Addr.Key, r.Payload)
	if err := writeSynced(name, record); err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(s.log, "%d\t%s\t%d\n", pos, r.Addr.Key, rev); err != nil {
		return nil, err
	}
	if err := s.log.Sync(); err != nil {
		return nil, err
	}
	s.lines = append(s.lines, logLine{r.Addr.Key, rev})
	s.heads[r.Addr.Key] = rev
	r.Rev, r.Pos = rev, pos
	return record, nil
}

func writeSynced(name string, b []byte) error {
	f, err := os.OpenFile(name+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".tmp", name)
}

func readRecordFile(name string) (rev uint64, addr, payload []byte, err error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil, nil, ErrNotFound
	}
	if err != nil {
		return 0, nil, nil, err
	}
	if len(b) < 10 {
		return 0, nil, nil, fmt.Errorf("%s is cut short", name)
	}
	rev, addr, payload = splitRecord(b)
	return rev, addr, payload, nil
}

func (s *threeFile) Head(a Address) (uint64, []byte, error) {
	rev, _, payload, err := readRecordFile(filepath.Join(s.folder(a.Key), "head.rec"))
	return rev, payload, err
}

func (s *threeFile) At(a Address, rev uint64) ([]byte, error) {
	_, _, payload, err := readRecordFile(s.historyFile(a.Key, rev))
	return payload, err
}

func (s *threeFile) Feed(after uint64, limit int, fn func(Entry) error) (uint64, error) {
	s.mu.Lock()
	lines := s.lines // only ever appended to
	s.mu.Unlock()
	for n := 0; after < uint64(len(lines)) && (limit == 0 || n < limit); n++ {
		l := lines[after]
		rev, addr, payload, err := readRecordFile(s.historyFile(l.addr, l.rev))
		if err != nil {
			return after, err
		}
		if err := fn(Entry{Pos: after + 1, Rev: rev, Addr: addr, Payload: payload}); err != nil {
			return after, err
		}
		after++
	}
	return after, nil
}

func (s *threeFile) Close() error { return s.log.Close() }
