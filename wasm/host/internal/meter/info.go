package meter

// Kind is what an import or export is.
type Kind byte

// The kinds, as in the binary format.
const (
	Func Kind = iota
	Table
	Memory
	Global
)

// String returns the name of k.
func (k Kind) String() string {
	switch k {
	case Func:
		return "func"
	case Table:
		return "table"
	case Memory:
		return "memory"
	case Global:
		return "global"
	}
	return "unknown"
}

// Import is one entry of the import section: something the module asks of its host.
type Import struct {
	Module, Name string
	Kind         Kind
}

// Export is one entry of the export section.
type Export struct {
	Name string
	Kind Kind
}

// Limits are the bounds of a memory in pages of 64 KiB.
type Limits struct {
	Min, Max uint32
	HasMax   bool // false: Max is not declared
}

// Info is what a module declares about itself, before any rewriting.
type Info struct {
	Imports   []Import
	Exports   []Export
	Memory    *Limits // nil without a memory
	Functions int     // defined by the module, without its imports
	HasStart  bool    // runs code at instantiation

	customs []custom
}

type custom struct {
	name string
	data []byte
}

// Custom returns the content of the first custom section of that name, which shares memory with the
// module given to Rewrite or Inspect, and whether there is one.
func (i *Info) Custom(name string) ([]byte, bool) {
	for _, c := range i.customs {
		if c.name == name {
			return c.data, true
		}
	}
	return nil, false
}

// Inspect reads what a module declares. It does not look into function bodies and applies no limits,
// so a module it can read may still be refused by Rewrite.
func Inspect(module []byte) (*Info, error) {
	m, err := parse(module, unlimited)
	if err != nil {
		return nil, err
	}
	return &m.info, nil
}
