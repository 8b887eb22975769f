package linmem

import "testing"

const page = 64 << 10

func TestReallocateKeepsContentAndStopsAtTheMaximum(t *testing.T) {
	m, err := New(8 * page)
	if err != nil {
		t.Fatal(err)
	}
	b := m.Reallocate(page)
	if len(b) != page || cap(b) != page {
		t.Fatalf("len %d cap %d, want one page of each: a guest must not reach behind its memory", len(b), cap(b))
	}
	b[0], b[page-1] = 7, 9
	b = m.Reallocate(8 * page)
	if len(b) != 8*page || b[0] != 7 || b[page-1] != 9 || b[8*page-1] != 0 {
		t.Fatalf("growing lost content: %d bytes, first %d, last of the old page %d", len(b), b[0], b[page-1])
	}
	if got := m.Reallocate(8*page + 1); got != nil {
		t.Fatalf("grew to %d bytes past the maximum", len(got))
	}
	if m.Size() < 8*page {
		t.Errorf("size %d, want at least %d", m.Size(), 8*page)
	}
	m.Free()
	m.Free()
	if got := m.Reallocate(page); got != nil {
		t.Errorf("freed memory answered %d bytes", len(got))
	}
}

func TestNewRefusesNothingAndMoreThanTheAddressSpace(t *testing.T) {
	for _, n := range []uint64{0, 1<<32 + 1} {
		if _, err := New(n); err == nil {
			t.Errorf("New(%d) gave a memory", n)
		}
	}
}
