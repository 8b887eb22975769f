package meter

const (
	// stepSize is the number of instructions that one step pays for.
	stepSize = 256
	// leafSize is how long a function without calls may be to run free of charge; whoever calls it
	// pays callSize more instructions.
	leafSize = 128
	callSize = 32

	maxAllLocals = 1 << 22 // of all functions together: a few bytes can declare thousands

	// The compiler's time goes with the square of these, in one function, and it can be stopped between
	// functions only. Go's largest functions nest 550 blocks, have 1,000 in all and 60 charges.
	maxNesting = 1 << 12
	maxBlocks  = 1 << 14
	maxCharges = 1 << 11
)

// Charges per unit of a bulk operation, as shifts of the length asked for.
const (
	bytesPerStepShift    = 5
	elementsPerStepShift = 2
	stepsPerPageShift    = 11
)

// editKind is what an edit puts in place of its range.
type editKind byte

const (
	editNumber   editKind = iota // the value
	editNothing                  // nothing; also marks a slot that was not needed
	editStep                     // take value steps
	editBytes                    // take steps for the bytes on top of the stack
	editElements                 // the same for table elements
	editPages                    // the same for pages
	editLoad                     // load the counter for a loop without calls, which ends at value
)

// edit replaces a range of the module, which may be empty.
type edit struct {
	span
	value uint32
	kind  editKind
}

// region is code that runs once for each charge: a function or the body of a loop, without the loops
// inside. Code that a branch skips is counted all the same.
type region struct {
	charge int    // index of its edit
	weight uint32 // instructions
	calls  bool   // here or in a loop inside
}

// bodyScanner decodes one function at a time and finds what to change in it.
type bodyScanner struct {
	*module
	r *reader

	edits   []edit
	regions []region // the function and the loops being read, innermost last
	loops   []bool   // for each open block whether it is a loop
	locals  uint32   // with parameters; also the index of the first local that is added
	blocks  int      // so far
	charges int      // so far, without the entry
}

// addedLocals is how many locals a function with charges gets: a copy of the counter, and the length
// of a bulk operation.
const addedLocals = 2

// The first edits of a body, filled in at its end: the number of local groups, a group behind them,
// and the charge of the entry.
const (
	slotGroups = iota
	slotLocalCount
	slotLocalType
	slotEntry
	slots
)

// scan reads function i, counted from the first one with code.
func (s *bodyScanner) scan(i int) error {
	body := s.bodies[i]
	s.r = &reader{src: s.src, pos: body.start, end: body.end}
	s.edits = append(s.edits[:0], make([]edit, slots)...)
	s.regions = append(s.regions[:0], region{charge: slotEntry})
	s.loops = append(s.loops[:0], false)
	s.blocks, s.charges = 0, 0
	s.declareLocals(s.params[s.funcTypes[i]])
	for len(s.loops) > 0 && s.r.err == nil {
		s.instruction()
	}
	if s.r.more() {
		s.r.malformed(s.r.pos, "code after the end of function %d", int(s.importedFuncs)+i)
	}
	if s.r.err != nil {
		return s.r.err
	}
	return nil
}

func (s *bodyScanner) declareLocals(params uint32) {
	r := s.r
	at := r.pos
	groups := r.count(2)
	s.edits[slotGroups] = edit{span: span{at, r.pos}, value: groups + 1}
	n := uint64(params)
	for range groups {
		n += uint64(r.u32())
		valueType(r)
	}
	if n > uint64(s.opts.MaxLocals) {
		r.fail(ErrLimit, at, "a function with %d locals, at most %d are allowed", n, s.opts.MaxLocals)
	}
	s.locals = uint32(min(n, uint64(s.opts.MaxLocals)))
	if s.allLocals += n; s.allLocals > maxAllLocals {
		r.fail(ErrLimit, at, "%d locals in all functions, at most %d are allowed", s.allLocals, maxAllLocals)
	}
	s.edits[slotLocalCount] = edit{span: span{r.pos, r.pos}, value: addedLocals}
	s.edits[slotLocalType] = edit{span: span{r.pos, r.pos}, value: typeI32}
	s.edits[slotEntry] = edit{span: span{r.pos, r.pos}}
}

func (s *bodyScanner) add(start, end int, value uint32, kind editKind) {
	s.edits = append(s.edits, edit{span{start, end}, value, kind})
	if kind > editNothing {
		if s.charges++; s.charges > maxCharges {
			s.r.fail(ErrLimit, start, "more than %d loops and bulk operations in a function", maxCharges)
		}
	}
}

// weigh adds to the code of the innermost region.
func (s *bodyScanner) weigh(instructions uint32) {
	s.regions[len(s.regions)-1].weight += instructions
}

func (s *bodyScanner) instruction() {
	r := s.r
	at := r.pos
	op := r.byte()
	s.weigh(1)
	switch immediates[op] {
	case immNone:
		if op == opEnd {
			s.close()
		}
	case immBlock:
		s.open(op, at)
	case immLabel, immTable:
		r.u32()
	case immBranchTable:
		for n := r.count(1); n > 0; n-- {
			r.u32()
		}
		r.u32()
	case immFunction:
		s.function(op)
	case immCallIndirect:
		s.typeIndex(r)
		r.u32()
		s.call()
	case immSelect:
		if n := r.byte(); n != 1 {
			r.fail(ErrUnsupported, at, "a select of %d types", n)
		}
		valueType(r)
	case immLocal:
		s.index(r, s.locals, "local")
	case immGlobal:
		s.index(r, s.globals, "global")
	case immAccess:
		access(r)
	case immZero:
		s.zero()
		if op == opMemoryGrow {
			s.add(at, at, stepsPerPageShift, editPages)
		}
	case immI32:
		r.signed(32)
	case immI64:
		r.signed(64)
	case immBytes4:
		r.bytes(4)
	case immBytes8:
		r.bytes(8)
	case immRefType:
		refType(r)
	case immMisc:
		s.misc(at)
	case immVector:
		vectorImmediates(r, at, s.prefixed())
	default:
		r.fail(ErrUnsupported, at, "opcode %#x%s", op, proposal(op))
	}
}

// prefixed reads the opcode after a prefix, which must be as short as it can be.
func (s *bodyScanner) prefixed() uint32 {
	at := s.r.pos
	sub := s.r.u32()
	if n := s.r.pos - at; n > 1 && sub>>(7*(n-1)) == 0 {
		s.r.fail(ErrUnsupported, at, "an opcode in a longer encoding than it needs")
	}
	return sub
}

func (s *bodyScanner) zero() {
	if b := s.r.byte(); b != 0 {
		s.r.fail(ErrUnsupported, s.r.pos-1, "memory index %d (several memories)", b)
	}
}

// function reads the index of a call or ref.func.
func (s *bodyScanner) function(op byte) {
	at := s.r.pos
	x := s.index(s.r, s.funcs(), "function")
	if moved := s.moved(x); moved != x {
		s.add(at, s.r.pos, moved, editNumber)
	}
	if op == opCall {
		s.call()
	}
}

func (s *bodyScanner) call() {
	s.regions[len(s.regions)-1].calls = true
	s.weigh(callSize)
}

// open reads the type of a block and enters it.
func (s *bodyScanner) open(op byte, opAt int) {
	r := s.r
	at := r.pos
	if b := r.byte(); b != blockVoid && b != typeFuncref && b != typeExternref && (b < typeV128 || b > typeI32) {
		r.pos = at
		if x := r.signed(33); x < 0 {
			r.fail(ErrUnsupported, at, "block type %#x", b)
		} else if x >= int64(len(s.params)) {
			r.malformed(at, "type %d does not exist, there are %d", x, len(s.params))
		}
	}
	if len(s.loops) >= maxNesting {
		r.fail(ErrLimit, at, "more than %d blocks inside one another", maxNesting)
	}
	if s.blocks++; s.blocks > maxBlocks {
		r.fail(ErrLimit, at, "more than %d blocks in a function", maxBlocks)
	}
	s.loops = append(s.loops, op == opLoop)
	if op == opLoop {
		s.add(opAt, opAt, 0, editNothing) // maybe editLoad
		s.regions = append(s.regions, region{charge: len(s.edits)})
		s.add(r.pos, r.pos, 0, editStep)
	}
}

// close leaves a block. The charge of a region is known at its end.
func (s *bodyScanner) close() {
	top := len(s.loops) - 1
	loop := s.loops[top]
	s.loops = s.loops[:top]
	if !loop && top > 0 {
		return
	}
	reg := s.regions[len(s.regions)-1]
	s.edits[reg.charge].value = 1 + reg.weight/stepSize
	if loop {
		s.regions = s.regions[:len(s.regions)-1]
		if reg.calls {
			s.regions[len(s.regions)-1].calls = true
		} else {
			load := &s.edits[reg.charge-1]
			load.kind, load.value = editLoad, uint32(s.r.pos)
		}
		return
	}
	s.edits[slotEntry].kind = editNothing
	if reg.calls || reg.weight > leafSize {
		s.edits[slotEntry].kind = editStep
	}
	for _, e := range s.edits[slotEntry:] {
		if e.kind > editNothing {
			return
		}
	}
	// Nothing is charged here, so nothing is added.
	s.edits[slotGroups].value--
	s.edits[slotLocalCount].kind = editNothing
	s.edits[slotLocalType].kind = editNothing
}

// misc reads what follows opPrefixMisc.
func (s *bodyScanner) misc(at int) {
	r := s.r
	switch sub := s.prefixed(); sub {
	case 0, 1, 2, 3, 4, 5, 6, 7: // saturating conversions
	case miscMemoryInit:
		r.u32()
		s.zero()
		s.add(at, at, bytesPerStepShift, editBytes)
	case miscMemoryCopy:
		s.zero()
		s.zero()
		s.add(at, at, bytesPerStepShift, editBytes)
	case miscMemoryFill:
		s.zero()
		s.add(at, at, bytesPerStepShift, editBytes)
	case miscTableInit, miscTableCopy:
		r.u32()
		r.u32()
		s.add(at, at, elementsPerStepShift, editElements)
	case miscTableGrow, miscTableFill:
		r.u32()
		s.add(at, at, elementsPerStepShift, editElements)
	case miscDataDrop, miscElemDrop, miscTableSize:
		r.u32()
	default:
		r.fail(ErrUnsupported, at, "opcode 0xfc %d", sub)
	}
}
