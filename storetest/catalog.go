package storetest

import (
	"fmt"
	"maps"

	"github.com/statesman-dev/statesman"
)

func catalogCases() []testCase {
	const every = "the catalog has one entry for each address ever written, at its head, with what is retained of it"
	return []testCase{
		{law: "catalog", name: "entries", rule: every, needs: []Capability{Catalog}, run: catalogEntries},
		{law: "catalog", name: "empty", rule: "a store that was never written has an empty catalog", needs: []Capability{Catalog}, run: catalogEmpty},
		{law: "catalog", name: "imported", rule: "an imported address is listed at the imported position", needs: []Capability{Catalog, Replica}, run: catalogImported},
		{law: "catalog", name: "lost-race", rule: "what was not written is not listed", needs: []Capability{Catalog}, run: catalogLostRace},
	}
}

func (c *C) wantCatalog(want ...statesman.CatalogEntry) {
	c.Helper()
	list := make(map[statesman.Address]statesman.CatalogEntry)
	for _, e := range want {
		list[e.Address] = e
	}
	if got := c.catalog(); !maps.Equal(got, list) {
		c.Errorf("catalog is\n     %v\nwant %v", got, list)
	}
}

func catalogEntries(c *C) {
	want := make([]statesman.CatalogEntry, 5)
	for i := range 12 {
		r := c.set(addr(i%5), fmt.Sprintf("%0*d", i+1, 0))
		e := &want[i%5]
		e.Address, e.HeadRevision, e.HeadPosition = r.Address, r.Revision, r.Position
		e.Retained++
		e.Bytes += int64(i) + 1
	}
	r := c.append(addr(0), statesman.Any(), bareCommit())
	want[0].HeadRevision, want[0].HeadPosition = r.Revision, r.Position
	want[0].Retained++
	c.wantCatalog(want...)
}

func catalogEmpty(c *C) { c.wantCatalog() }

func catalogImported(c *C) {
	c.must(capability[statesman.Replica](c).Import(c.ctx, foreign(addr(1), 4, 40, "12345")), "import")
	c.wantCatalog(statesman.CatalogEntry{Address: addr(1), HeadRevision: 4, HeadPosition: 40, Retained: 1, Bytes: 5})
}

func catalogLostRace(c *C) {
	_, err := c.store.Append(c.ctx, addr(1), statesman.AtRevision(1), text("lost"))
	c.wantConflict(err, addr(1), statesman.AtRevision(1))
	c.wantCatalog()
}
