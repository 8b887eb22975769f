package fsstore

import "strings"

// sweepLeft removes what compaction left behind when a process ended: segments that were replaced, copies
// that no manifest came to list, and index files without a segment. It is called when a new manifest
// is durable, so two do without them. As long as a newer manifest is there that cannot be read, or
// something is missing, everything stays: it may be what is needed.
func (s *Store) sweepLeft(r *recovery, m *manifest, c contents) {
	safe := len(c.manifests) > 0 && m.gen == last(c.manifests) && len(s.ix.harm) == 0 && s.ix.doubt == 0
	there := make(map[string]bool)
	for _, g := range s.ix.segs {
		there[g.index.name] = true
		safe = safe && !g.missing
	}
	if !safe {
		for _, n := range r.left {
			s.log.Warn("leftover segment is left alone", "store", s.dir, "file", n)
		}
		return
	}
	names := r.left
	for _, n := range c.log {
		if strings.HasSuffix(n, ".idx") && !there[n] {
			names = append(names, n)
		}
	}
	for _, n := range names {
		if err := s.fs.Remove(s.logPath(n)); err != nil {
			s.log.Warn("leftover stays", "store", s.dir, "file", n, "error", err)
			continue
		}
		s.log.Info("leftover of a compaction was removed", "store", s.dir, "file", n)
	}
}
