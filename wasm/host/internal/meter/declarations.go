package meter

// Value types and the type forms of the binary format.
const (
	typeI32       = 0x7f
	typeV128      = 0x7b
	typeFuncref   = 0x70
	typeExternref = 0x6f
	formFunction  = 0x60
)

// maxTables and maxValues bound what costs the runtime more than the bytes that say it.
const (
	maxTables = 64
	maxValues = 1000 // parameters or results of a type, as browsers have it
)

func valueType(r *reader) {
	at := r.pos
	t := r.byte()
	switch {
	case r.err != nil, t >= typeV128 && t <= typeI32, t == typeFuncref, t == typeExternref:
	case t == 0x63 || t == 0x64:
		r.fail(ErrUnsupported, at, "value type %#x (typed references)", t)
	case t >= 0x68 && t <= 0x75:
		r.fail(ErrUnsupported, at, "value type %#x (garbage collection or exceptions)", t)
	default:
		r.fail(ErrUnsupported, at, "unknown value type %#x", t)
	}
}

func refType(r *reader) {
	at := r.pos
	if t := r.byte(); r.err == nil && t != typeFuncref && t != typeExternref {
		r.fail(ErrUnsupported, at, "reference type %#x", t)
	}
}

func globalType(r *reader) {
	valueType(r)
	at := r.pos
	if mut := r.byte(); mut > 1 {
		r.fail(ErrUnsupported, at, "global mutability %#x", mut)
	}
}

func (m *module) functionType(r *reader) {
	at := r.pos
	if form := r.byte(); form != formFunction {
		r.fail(ErrUnsupported, at, "type form %#x (garbage collection)", form)
		return
	}
	values := func() uint32 {
		at := r.pos
		n := r.count(1)
		if n > maxValues {
			r.fail(ErrLimit, at, "a type of %d values, at most %d are allowed", n, maxValues)
		}
		for range n {
			valueType(r)
		}
		return n
	}
	m.params = append(m.params, values())
	values()
}

// index reads an index into a space of the given size.
func (m *module) index(r *reader, space uint32, what string) uint32 {
	at := r.pos
	x := r.u32()
	if x >= space && r.err == nil {
		r.malformed(at, "%s %d does not exist, there are %d", what, x, space)
		return 0
	}
	return x
}

func (m *module) typeIndex(r *reader) uint32 {
	return m.index(r, uint32(len(m.params)), "type")
}

// funcIndex reads a function index and edits it to where the function moves.
func (m *module) funcIndex(r *reader) {
	at := r.pos
	x := m.index(r, m.funcs(), "function")
	if moved := m.moved(x); moved != x {
		m.edit(at, r.pos, moved)
	}
}

func (m *module) importEntry(r *reader) {
	at := r.pos
	imp := Import{Module: r.name(), Name: r.name()}
	if imp.Module == YieldModule && m.reservedAt == 0 {
		m.reservedAt = at
	}
	at = r.pos
	kind := r.byte()
	imp.Kind = Kind(kind)
	switch imp.Kind {
	case Func:
		m.typeIndex(r)
		m.importedFuncs++
	case Table:
		m.table(r)
	case Memory:
		m.memory(r)
	case Global:
		globalType(r)
		m.importedGlobals++
		m.globals++
	default:
		r.fail(ErrUnsupported, at, "import kind %d", kind)
	}
	m.info.Imports = append(m.info.Imports, imp)
}

// limits reads the bounds of a memory or table and edits the maximum down to most.
func (m *module) limits(r *reader, what string, most uint32) Limits {
	at := r.pos
	flags := r.byte()
	if flags > 1 {
		r.fail(ErrUnsupported, at, "%s limits flag %#x (shared or 64 bit)", what, flags)
		return Limits{}
	}
	l := Limits{HasMax: flags == 1}
	minAt := r.pos
	l.Min = r.u32()
	maxAt := r.pos
	if l.HasMax {
		if l.Max = r.u32(); l.Max < l.Min {
			r.malformed(maxAt, "%s maximum %d is below its minimum %d", what, l.Max, l.Min)
		}
	} else {
		m.edit(at, minAt, 1)
	}
	if l.Min > most {
		r.fail(ErrLimit, minAt, "%s minimum is %d, at most %d is allowed", what, l.Min, most)
	}
	if !l.HasMax || l.Max > most {
		m.edit(maxAt, r.pos, most)
	}
	return l
}

func (m *module) memory(r *reader) {
	at := r.pos
	l := m.limits(r, "memory", uint32(m.opts.MaxMemoryPages))
	if l.Min > maxMemoryPages || l.Max > maxMemoryPages {
		r.malformed(at, "memory of more than %d pages", maxMemoryPages)
	}
	if m.memories++; m.memories > 1 {
		r.fail(ErrUnsupported, at, "more than one memory")
	}
	if m.info.Memory == nil {
		m.info.Memory = &l
	}
}

func (m *module) table(r *reader) {
	at := r.pos
	refType(r)
	l := m.limits(r, "table", uint32(m.opts.MaxTableElements))
	if m.tables++; m.tables > maxTables {
		r.fail(ErrLimit, at, "more than %d tables", maxTables)
	}
	if m.tableMin += uint64(l.Min); m.tableMin > uint64(m.opts.MaxTableElements) {
		r.fail(ErrLimit, at, "tables of %d elements, at most %d are allowed", m.tableMin, m.opts.MaxTableElements)
	}
}

func (m *module) export(r *reader) {
	e := Export{Name: r.name()}
	at := r.pos
	kind := r.byte()
	e.Kind = Kind(kind)
	switch e.Kind {
	case Func:
		m.funcIndex(r)
	case Table:
		m.index(r, m.tables, "table")
	case Memory:
		m.index(r, m.memories, "memory")
	case Global:
		m.index(r, m.globals, "global")
	default:
		r.fail(ErrUnsupported, at, "export kind %d", kind)
	}
	m.info.Exports = append(m.info.Exports, e)
}

// element reads one segment; the three bits of its flags make eight forms.
func (m *module) element(r *reader) {
	const (
		notActive     = 1 // passive, or with explicitTable declarative
		explicitTable = 2
		expressions   = 4
	)
	at := r.pos
	flags := r.u32()
	if flags > 7 {
		r.fail(ErrUnsupported, at, "element segment flags %#x", flags)
		return
	}
	if flags&notActive == 0 {
		if flags&explicitTable != 0 {
			m.index(r, m.tables, "table")
		}
		m.constant(r)
	}
	if flags&(notActive|explicitTable) != 0 {
		if flags&expressions != 0 {
			refType(r)
		} else if kind := r.byte(); kind != 0 {
			r.fail(ErrUnsupported, r.pos-1, "element kind %#x", kind)
		}
	}
	at = r.pos
	n := r.count(1)
	if m.elements += uint64(n); m.elements > uint64(m.opts.MaxTableElements) {
		r.fail(ErrLimit, at, "element segments of %d elements, at most %d are allowed", m.elements, m.opts.MaxTableElements)
	}
	for ; n > 0 && r.err == nil; n-- {
		if flags&expressions != 0 {
			m.constant(r)
		} else {
			m.funcIndex(r)
		}
	}
}

func (m *module) data(r *reader) {
	at := r.pos
	switch flags := r.u32(); flags {
	case 0:
		m.constant(r)
	case 1:
	case 2:
		m.index(r, m.memories, "memory")
		m.constant(r)
	default:
		r.fail(ErrUnsupported, at, "data segment flags %#x", flags)
	}
	r.bytes(r.u32())
}

// constant reads a constant expression with its end.
func (m *module) constant(r *reader) {
	for r.err == nil {
		at := r.pos
		switch op := r.byte(); op {
		case opEnd:
			return
		case opI32Const:
			r.signed(32)
		case opI64Const:
			r.signed(64)
		case opF32Const:
			r.bytes(4)
		case opF64Const:
			r.bytes(8)
		case opGlobalGet:
			m.index(r, m.globals, "global")
		case opRefNull:
			refType(r)
		case opRefFunc:
			m.funcIndex(r)
		case opPrefixVector:
			if sub := r.byte(); sub != vecConst {
				r.fail(ErrUnsupported, at, "vector opcode %#x in a constant expression", sub)
			}
			r.bytes(16)
		case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e: // add, sub and mul of the extended constants
		default:
			r.fail(ErrUnsupported, at, "opcode %#x in a constant expression", op)
		}
	}
}
