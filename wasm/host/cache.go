package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// cacheBudget is how much native code is kept between runs, in bytes. A Go plugin takes 10 to
// 50 MB.
const cacheBudget = 512 << 20

// pruneCache removes the oldest entries beyond the budget. What cannot be removed stays: the
// cache is a matter of speed alone.
func pruneCache(dir string, budget int64) {
	type item struct {
		path string
		size int64
		at   time.Time
	}
	var items []item
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if fi, err := d.Info(); err == nil {
			items = append(items, item{path, fi.Size(), fi.ModTime()})
		}
		return nil
	})
	slices.SortFunc(items, func(a, b item) int { return b.at.Compare(a.at) })
	for _, i := range items {
		if budget -= i.size; budget < 0 {
			_ = os.Remove(i.path)
		}
	}
}
