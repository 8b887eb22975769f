package outbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/outbox"
)

// cursorStores is what passes TestCursorStores: each opens an empty store, and again the same one.
var cursorStores = map[string]func(t *testing.T) (open func() outbox.CursorStore, keeps bool){
	"memory": func(*testing.T) (func() outbox.CursorStore, bool) {
		return func() outbox.CursorStore { return &outbox.MemoryCursors{} }, false
	},
	"file": func(t *testing.T) (func() outbox.CursorStore, bool) {
		dir := filepath.Join(t.TempDir(), "made", "by open")
		return func() outbox.CursorStore {
			f, err := outbox.OpenFileCursors(dir)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}, true
	},
}

func at(l statesman.Lineage, position, start int64) outbox.Bookmark {
	return outbox.Bookmark{Cursor: statesman.Cursor{Lineage: l, Position: position}, Start: start}
}

// cursorLaws is the conformance suite of cursor stores.
var cursorLaws = []struct {
	name string
	rule string
	test func(t *testing.T, open func() outbox.CursorStore, keeps bool)
}{
	{"missing", "an id that was never written has no bookmark", func(t *testing.T, open func() outbox.CursorStore, _ bool) {
		if b, ok, err := open().Read(t.Context(), "a"); ok || err != nil || b != (outbox.Bookmark{}) {
			t.Errorf("got %+v, %v, %v, want none", b, ok, err)
		}
	}},
	{"monotonic", "Write never moves a bookmark back; at or below it is no error and no change", func(t *testing.T, open func() outbox.CursorStore, _ bool) {
		s, l := open(), statesman.NewLineage()
		want := at(l, 100, 3)
		for _, b := range []outbox.Bookmark{at(l, 9, 3), want, at(l, 100, 3), at(l, 20, 3), at(l, 99, 0)} {
			mustWrite(t, s, "a", b)
		}
		wantBookmark(t, s, "a", want)
	}},
	{"beginning", "position 0 is a bookmark like another", func(t *testing.T, open func() outbox.CursorStore, _ bool) {
		s, l := open(), statesman.NewLineage()
		mustWrite(t, s, "a", at(l, 0, 0))
		wantBookmark(t, s, "a", at(l, 0, 0))
	}},
	{"separate", "ids do not see each other, whatever they are made of", func(t *testing.T, open func() outbox.CursorStore, _ bool) {
		s, l := open(), statesman.NewLineage()
		ids := []string{"a", "A", "b", "../a", "a/b", "a.cursor", "ä", "CON", strings.Repeat("x", outbox.MaxIDLen)}
		for i, id := range ids {
			mustWrite(t, s, id, at(l, int64(i+1), 0))
		}
		for i, id := range ids {
			wantBookmark(t, s, id, at(l, int64(i+1), 0))
		}
	}},
	{"lineage", "Write over another lineage is ErrLineage and no change", func(t *testing.T, open func() outbox.CursorStore, _ bool) {
		s, l := open(), statesman.NewLineage()
		mustWrite(t, s, "a", at(l, 5, 0))
		if err := s.Write(t.Context(), "a", at(statesman.NewLineage(), 6, 0)); !errors.Is(err, statesman.ErrLineage) {
			t.Errorf("got %v, want ErrLineage", err)
		}
		wantBookmark(t, s, "a", at(l, 5, 0))
	}},
	{"rewind", "Rewind goes back, and across lineages, and Write goes on from there", func(t *testing.T, open func() outbox.CursorStore, _ bool) {
		s, l, other := open(), statesman.NewLineage(), statesman.NewLineage()
		mustWrite(t, s, "a", at(l, 50, 0))
		for _, b := range []outbox.Bookmark{at(l, 7, 0), at(other, 3, 3)} {
			if err := s.Rewind(t.Context(), "a", b); err != nil {
				t.Fatal(err)
			}
			wantBookmark(t, s, "a", b)
		}
		mustWrite(t, s, "a", at(other, 4, 3))
		wantBookmark(t, s, "a", at(other, 4, 3))
	}},
	{"invalid", "a bad id or bookmark is ErrInvalid and no change", func(t *testing.T, open func() outbox.CursorStore, _ bool) {
		s, l := open(), statesman.NewLineage()
		mustWrite(t, s, "a", at(l, 5, 0))
		for _, b := range []outbox.Bookmark{{}, at(l, -1, 0), at(l, 9, -1), at(l, 9, 10), at(statesman.Lineage{}, 9, 0)} {
			for name, do := range map[string]func(context.Context, string, outbox.Bookmark) error{"write": s.Write, "rewind": s.Rewind} {
				if err := do(t.Context(), "a", b); !errors.Is(err, statesman.ErrInvalid) {
					t.Errorf("%s of %+v: %v, want ErrInvalid", name, b, err)
				}
			}
		}
		for _, id := range []string{"", "a b", "a\n", strings.Repeat("x", outbox.MaxIDLen+1)} {
			if _, _, err := s.Read(t.Context(), id); !errors.Is(err, statesman.ErrInvalid) {
				t.Errorf("read of id %q: %v, want ErrInvalid", id, err)
			}
			if err := s.Write(t.Context(), id, at(l, 1, 0)); !errors.Is(err, statesman.ErrInvalid) {
				t.Errorf("write of id %q: %v, want ErrInvalid", id, err)
			}
		}
		wantBookmark(t, s, "a", at(l, 5, 0))
	}},
	{"cancel", "a cancelled context has no effect", func(t *testing.T, open func() outbox.CursorStore, _ bool) {
		s, l := open(), statesman.NewLineage()
		mustWrite(t, s, "a", at(l, 5, 0))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err := s.Read(ctx, "a")
		for name, err := range map[string]error{"read": err, "write": s.Write(ctx, "a", at(l, 6, 0)), "rewind": s.Rewind(ctx, "a", at(l, 1, 0))} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want the context's error", name, err)
			}
		}
		wantBookmark(t, s, "a", at(l, 5, 0))
	}},
	{"concurrent", "of racing writers the furthest wins", func(t *testing.T, open func() outbox.CursorStore, _ bool) {
		s, l := open(), statesman.NewLineage()
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := range 10 {
					if err := s.Write(t.Context(), "a", at(l, int64(i*4+w), 0)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		wantBookmark(t, s, "a", at(l, 39, 0))
	}},
	{"reopen", "a store that keeps bookmarks has them when it is opened again", func(t *testing.T, open func() outbox.CursorStore, keeps bool) {
		l := statesman.NewLineage()
		mustWrite(t, open(), "a", at(l, 41, 2))
		b, ok, err := open().Read(t.Context(), "a")
		if err != nil || ok != keeps || keeps && b != at(l, 41, 2) {
			t.Errorf("reopened: %+v, %v, %v, keeps %v", b, ok, err, keeps)
		}
	}},
}

func TestCursorStores(t *testing.T) {
	for name, make := range cursorStores {
		for _, law := range cursorLaws {
			t.Run(name+"/"+law.name, func(t *testing.T) {
				open, keeps := make(t)
				law.test(t, open, keeps)
				if t.Failed() {
					t.Logf("the law: %s", law.rule)
				}
			})
		}
	}
}

func mustWrite(t *testing.T, s outbox.CursorStore, id string, b outbox.Bookmark) {
	t.Helper()
	if err := s.Write(t.Context(), id, b); err != nil {
		t.Fatalf("write %q: %v", id, err)
	}
}

func wantBookmark(t *testing.T, s outbox.CursorStore, id string, want outbox.Bookmark) {
	t.Helper()
	if b, ok, err := s.Read(t.Context(), id); err != nil || !ok || b != want {
		t.Errorf("bookmark %q is %+v, %v, %v, want %+v", id, b, ok, err, want)
	}
}

func TestCursorFileLooksAsDocumented(t *testing.T) {
	dir := t.TempDir()
	f, err := outbox.OpenFileCursors(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := statesman.ParseLineage("000102030405060708090a0b0c0d0e0f")
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, f, "upstream", at(l, 42, 0))
	path := filepath.Join(dir, "1581e27de87bffae0bd4d745cd7964e68528d7a83e2e4c259a782d275df6f558.cursor") // printf upstream | sha256sum
	if got := f.Path("upstream"); got != path {
		t.Errorf("path %s, want %s", got, path)
	}
	text, err := os.ReadFile(path)
	want := `{"outboxId":"upstream","lineage":"000102030405060708090a0b0c0d0e0f","position":42,"start":0}` + "\n"
	if err != nil || string(text) != want {
		t.Errorf("file holds %q, %v, want %q", text, err, want)
	}
}

func TestDamagedCursorFileIsNeverAFreshStart(t *testing.T) {
	whole := `{"outboxId":"upstream","lineage":"000102030405060708090a0b0c0d0e0f","position":42}`
	for name, text := range map[string]string{
		"empty": "", "cut off": whole[:40], "zeros": strings.Repeat("\x00", 80), "behind it": whole + "x", "twice": whole + whole,
		"another outbox": strings.Replace(whole, "upstream", "other", 1), "no lineage": `{"outboxId":"upstream","position":42}`,
		"no position": `{"outboxId":"upstream","lineage":"000102030405060708090a0b0c0d0e0f"}`,
		"negative":    strings.Replace(whole, "42", "-42", 1), "too large a number": strings.Replace(whole, "42", "9223372036854775808", 1),
		"short lineage": strings.Replace(whole, "0f", "", 1), "huge": whole + strings.Repeat(" ", 1<<16),
		"begun behind": strings.Replace(whole, "42", `42,"start":43`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			s, sink := newStore(t), &fakeSink{}
			fill(t, s, 3)
			f, err := outbox.OpenFileCursors(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			path := f.Path("upstream")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := f.Read(t.Context(), "upstream"); !errors.Is(err, statesman.ErrCorrupt) || !strings.Contains(err.Error(), path) {
				t.Errorf("read: %v, want ErrCorrupt that names the file", err)
			}
			if err := f.Write(t.Context(), "upstream", at(statesman.NewLineage(), 99, 0)); !errors.Is(err, statesman.ErrCorrupt) {
				t.Errorf("write: %v, want ErrCorrupt", err)
			}
			d := newDispatcher(t, s, sink, f, nil)
			if _, err := d.DispatchOnce(t.Context()); !errors.Is(err, outbox.ErrOperator) {
				t.Errorf("cycle: %v, want an operator's mistake", err)
			}
			wantPositions(t, sink, nil)
			if st := d.Status(t.Context()); st.State != outbox.StatePaused || !strings.Contains(st.Hint, "move "+path) {
				t.Errorf("state %s, hint %q, want paused with the way out", st.State, st.Hint)
			}
			if err := os.Rename(path, path+".aside"); err != nil { // the way out
				t.Fatal(err)
			}
			dispatch(t, d)
			wantPositions(t, sink, span(1, 3))
		})
	}
}

func TestCursorFilesSurviveLeftovers(t *testing.T) {
	dir := t.TempDir()
	f, err := outbox.OpenFileCursors(dir)
	if err != nil {
		t.Fatal(err)
	}
	b := at(statesman.NewLineage(), 5, 0)
	mustWrite(t, f, "a", b)
	left := f.Path("a") + ".123.tmp" // a crash before the rename
	if err := os.WriteFile(left, []byte(`{"outbox`), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err = outbox.OpenFileCursors(dir); err != nil {
		t.Fatal(err)
	}
	wantBookmark(t, f, "a", b)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the leftover is still there: %v", err)
	}

	// A directory that cannot be written to: an error, no change, no leftover.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(t.Context(), "a", at(b.Cursor.Lineage, 6, 0)); err == nil || !strings.Contains(err.Error(), `outbox "a"`) {
		t.Errorf("write without a directory: %v, want an error that names the outbox", err)
	}
	if _, err := outbox.OpenFileCursors(filepath.Join(os.DevNull, "x")); err == nil {
		t.Error("opening below a file succeeded")
	}
}
