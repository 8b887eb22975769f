package meter

// emitter writes the rewritten module.
type emitter struct {
	*module
	out   []byte
	edits []edit // those not yet applied

	yield   uint32 // the injected import
	refill  uint32 // the injected function, behind all others
	counter uint32 // the injected global, behind all others
	scratch []byte
}

// injected are the sections that items are added to, in the order in which a module has them.
var injected = [...]struct {
	id    byte
	items uint32
}{{secType, 2}, {secImport, 1}, {secFunction, 1}, {secGlobal, 1}, {secCode, 1}}

func (m *module) emit() ([]byte, error) {
	e := &emitter{
		module:  m,
		out:     make([]byte, 0, len(m.src)+len(m.src)/4+256),
		edits:   m.edits,
		yield:   m.importedFuncs,
		refill:  m.funcs() + 1,
		counter: m.globals,
	}
	e.out = append(e.out, m.src[:headerSize]...)
	missing := injected[:]
	for _, s := range m.sections {
		if s.id != secCustom {
			for len(missing) > 0 && sections[missing[0].id].rank <= sections[s.id].rank {
				if add := missing[0]; add.id != s.id {
					e.section(add.id, e.addition(add.id, appendU32(nil, add.items)))
				}
				missing = missing[1:]
			}
		}
		if err := e.copySection(s); err != nil {
			return nil, err
		}
	}
	for _, add := range missing {
		e.section(add.id, e.addition(add.id, appendU32(nil, add.items)))
	}
	return e.out, nil
}

func (e *emitter) section(id byte, content []byte) {
	e.out = append(e.out, id)
	e.out = appendU32(e.out, uint32(len(content)))
	e.out = append(e.out, content...)
}

func (e *emitter) copySection(s section) error {
	switch {
	case s.id == secCustom && s.name == nameSection:
		e.section(s.id, e.names(s))
		return nil
	case s.id == secCode:
		return e.code(s)
	}
	n := 0
	for n < len(e.edits) && e.edits[n].start <= s.end {
		n++
	}
	content := e.apply(e.scratch[:0], s.span, e.edits[:n], 0)
	e.edits = e.edits[n:]
	content = e.addition(s.id, content)
	e.section(s.id, content)
	e.scratch = content
	return nil
}

// addition appends to the items of a section, or to the number of them in a new one, what is injected.
func (e *emitter) addition(id byte, b []byte) []byte {
	switch id {
	case secType:
		b = append(b, formFunction, 1, typeI32, 0) // of yield
		b = append(b, formFunction, 0, 0)          // of refill
	case secImport:
		b = appendName(b, YieldModule)
		b = appendName(b, YieldName)
		b = append(b, byte(Func))
		b = appendU32(b, uint32(len(e.params)))
	case secFunction:
		b = appendU32(b, uint32(len(e.params))+1)
	case secGlobal:
		b = append(b, typeI32, 1, opI32Const)
		b = appendI32(b, int32(e.opts.Interval))
		b = append(b, opEnd)
	case secCode:
		body := e.refillBody()
		b = appendU32(b, uint32(len(body)))
		b = append(b, body...)
	}
	return b
}

// apply appends a range of the module with its edits made.
func (e *emitter) apply(b []byte, s span, edits []edit, local uint32) []byte {
	c := charger{emitter: e, local: local}
	at := s.start
	for _, d := range edits {
		b = append(b, e.src[at:d.start]...)
		at = d.end
		c.loaded = d.start < c.loadedUntil
		switch d.kind {
		case editNumber:
			b = appendU32(b, d.value)
		case editNothing:
		case editLoad:
			if !c.loaded {
				b = c.load(b)
				c.loadedUntil = int(d.value)
			}
		default:
			b = c.charge(b, d)
		}
	}
	return append(b, e.src[at:s.end]...)
}

// refillBody is the injected function: it reports the steps taken and starts the counter afresh, in
// this order, so that an instance which is used on after yield stopped it is stopped again at once.
func (e *emitter) refillBody() []byte {
	interval := int32(e.opts.Interval)
	b := []byte{0, opI32Const}
	b = appendI32(b, interval)
	b = appendU32(append(b, opGlobalGet), e.counter)
	b = append(b, opI32Sub)
	b = appendU32(append(b, opCall), e.yield)
	b = appendI32(append(b, opI32Const), interval)
	b = appendU32(append(b, opGlobalSet), e.counter)
	return append(b, opEnd)
}

// code writes the code section function by function.
func (e *emitter) code(s section) error {
	content := appendU32(make([]byte, 0, (s.end-s.start)*5/4+64), uint32(len(e.bodies))+1)
	scan := &bodyScanner{module: e.module}
	e.edits = e.edits[1:] // of the count, written above
	for i, span := range e.bodies {
		if err := scan.scan(i); err != nil {
			return err
		}
		e.scratch = e.apply(e.scratch[:0], span, scan.edits, scan.locals)
		content = appendU32(content, uint32(len(e.scratch)))
		content = append(content, e.scratch...)
	}
	e.section(s.id, e.addition(s.id, content))
	return nil
}
