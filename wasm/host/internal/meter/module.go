package meter

// Section ids of the binary format.
const (
	secCustom byte = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
)

// sections names them and gives their place in a module, which the data count section, added later,
// has out of turn.
var sections = [...]struct {
	name string
	rank int
}{
	secCustom: {"custom", 0}, secType: {"type", 1}, secImport: {"import", 2}, secFunction: {"function", 3},
	secTable: {"table", 4}, secMemory: {"memory", 5}, secGlobal: {"global", 6}, secExport: {"export", 7},
	secStart: {"start", 8}, secElement: {"element", 9}, secDataCount: {"data count", 10}, secCode: {"code", 11},
	secData: {"data", 12},
}

// span is a range of the module.
type span struct{ start, end int }

type section struct {
	id byte
	span
	name string // of a custom section; its span begins with it all the same
}

// module is what Rewrite knows about the original.
type module struct {
	src  []byte
	opts Options
	info Info

	sections   []section
	params     []uint32 // number of parameters of each type
	funcTypes  []uint32 // type of each function defined here
	bodies     []span
	reservedAt int // offset of an import from YieldModule, or 0

	importedFuncs, importedGlobals uint32
	globals, tables, memories      uint32 // with the imported ones
	tableMin, elements, allLocals  uint64 // sums held to limits

	// edits to everything but function bodies, in order of position.
	edits []edit
}

func (m *module) edit(start, end int, value uint32) {
	m.edits = append(m.edits, edit{span: span{start, end}, value: value})
}

// funcs is the size of the function index space.
func (m *module) funcs() uint32 { return m.importedFuncs + uint32(len(m.funcTypes)) }

// moved is where function x is after the import was injected behind the other imports.
func (m *module) moved(x uint32) uint32 {
	if x >= m.importedFuncs {
		return x + 1
	}
	return x
}

// parse reads everything but the function bodies, and collects the edits.
func parse(src []byte, opts Options) (*module, error) {
	if err := checkHeader(src); err != nil {
		return nil, err
	}
	m := &module{src: src, opts: opts}
	r := &reader{src: src, pos: headerSize, end: len(src), whole: true}
	last := 0
	for r.more() {
		at := r.pos
		id := r.byte()
		if int(id) >= len(sections) {
			what := "unknown section %d"
			if id == 13 {
				what = "section %d is a tag section (exceptions)"
			}
			r.fail(ErrUnsupported, at, what, id)
			break
		}
		size := r.u32()
		body := r.sub(size)
		if rank := sections[id].rank; id != secCustom {
			if rank <= last {
				body.malformed(at, "the %s section is out of order or repeated", sections[id].name)
			}
			last = rank
		}
		s := section{id: id, span: span{body.pos, body.end}}
		m.section(&s, body)
		if body.more() {
			body.malformed(body.pos, "the %s section goes on after its content", sections[id].name)
		}
		if body.err != nil {
			return nil, body.err
		}
		m.sections = append(m.sections, s)
	}
	if len(m.bodies) != len(m.funcTypes) {
		r.malformed(r.pos, "%d functions are declared and %d have code", len(m.funcTypes), len(m.bodies))
	}
	if r.err != nil {
		return nil, r.err
	}
	m.info.Functions = len(m.funcTypes)
	return m, nil
}

func (m *module) section(s *section, r *reader) {
	switch s.id {
	case secCustom:
		s.name = r.name()
		if r.err == nil {
			m.info.customs = append(m.info.customs, custom{s.name, r.src[r.pos:r.end:r.end]})
			r.pos = r.end
		}
	case secType:
		m.grow(r, secType, 3, m.functionType)
	case secImport:
		m.grow(r, secImport, 4, m.importEntry)
	case secFunction:
		m.grow(r, secFunction, 1, func(r *reader) { m.funcTypes = append(m.funcTypes, m.typeIndex(r)) })
		if n := len(m.funcTypes); n > m.opts.MaxFunctions {
			r.fail(ErrLimit, s.start, "%d functions, at most %d are allowed", n, m.opts.MaxFunctions)
		}
	case secTable:
		m.each(r, 3, m.table)
	case secMemory:
		m.each(r, 2, m.memory)
	case secGlobal:
		m.grow(r, secGlobal, 4, func(r *reader) {
			globalType(r)
			m.constant(r)
			m.globals++
		})
	case secExport:
		m.each(r, 3, m.export)
	case secStart:
		m.funcIndex(r)
		m.info.HasStart = true
	case secElement:
		m.each(r, 2, m.element)
	case secDataCount:
		r.u32()
	case secCode:
		m.grow(r, secCode, 3, m.body)
	case secData:
		m.each(r, 2, m.data)
	}
}

// each reads a vector of items of at least size bytes.
func (m *module) each(r *reader, size int, item func(*reader)) {
	for n := r.count(size); n > 0 && r.err == nil; n-- {
		item(r)
	}
}

// grow is each for one of the sections that items are added to.
func (m *module) grow(r *reader, id byte, size int, item func(*reader)) {
	at := r.pos
	n := r.count(size)
	for _, add := range injected {
		if add.id == id {
			m.edit(at, r.pos, n+add.items)
		}
	}
	for ; n > 0 && r.err == nil; n-- {
		item(r)
	}
}

func (m *module) body(r *reader) {
	at := r.pos
	size := r.u32()
	if int64(size) > int64(m.opts.MaxBodyBytes) {
		r.fail(ErrLimit, at, "function %d has %d bytes of code, at most %d are allowed",
			m.importedFuncs+uint32(len(m.bodies)), size, m.opts.MaxBodyBytes)
		return
	}
	start := r.pos
	r.bytes(size)
	m.bodies = append(m.bodies, span{start, start + int(size)})
}
