package fsstore

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/vfs"
)

// TestKindOfFileSystem checks what is refused and what is only said. No network file system is
// mounted for it: which number means which class is tested in internal/vfs.
func TestKindOfFileSystem(t *testing.T) {
	for _, tt := range []struct {
		class   vfs.Class
		force   bool
		refused bool
		logged  string
	}{
		{vfs.ClassFull, false, false, ""},
		{vfs.ClassUnknown, false, false, ""},
		{vfs.ClassVolatile, false, false, "volatile"},
		{vfs.ClassNetwork, false, true, ""},
		{vfs.ClassNetwork, true, false, "keeps no promises"},
	} {
		var log bytes.Buffer
		s := &Store{dir: "d", log: slog.New(slog.NewTextHandler(&log, nil)), opts: Options{Force: tt.force}}
		err := s.judgeKind("nfs", tt.class)
		if refused := errors.Is(err, statesman.ErrInvalid); refused != tt.refused {
			t.Errorf("%v, force %v: error %v, want refused %v", tt.class, tt.force, err, tt.refused)
		}
		if tt.refused && (!strings.Contains(err.Error(), "nfs") || statesman.HintOf(err) == "") {
			t.Errorf("error %q with hint %q: want the kind and a way out", err, statesman.HintOf(err))
		}
		if !strings.Contains(log.String(), tt.logged) || tt.logged == "" && log.Len() > 0 {
			t.Errorf("%v, force %v: logged %q, want %q", tt.class, tt.force, log.String(), tt.logged)
		}
	}
}
