package meter

// The opcodes this package has to know by name.
const (
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opCall         = 0x10
	opCallIndirect = 0x11
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32LeS       = 0x4c
	opI32Sub       = 0x6b
	opI32And       = 0x71
	opI32Shl       = 0x74
	opI32ShrU      = 0x76
	opRefNull      = 0xd0
	opRefFunc      = 0xd2
	opPrefixMisc   = 0xfc
	opPrefixVector = 0xfd

	blockVoid = 0x40

	vecConst = 12
)

// Opcodes after opPrefixMisc.
const (
	miscMemoryInit = 8 + iota
	miscDataDrop
	miscMemoryCopy
	miscMemoryFill
	miscTableInit
	miscElemDrop
	miscTableCopy
	miscTableGrow
	miscTableSize
	miscTableFill
)

// immediate says what follows an opcode.
type immediate byte

const (
	immUnknown immediate = iota
	immNone
	immBlock
	immLabel
	immBranchTable
	immFunction
	immCallIndirect
	immSelect
	immLocal
	immGlobal
	immTable
	immAccess // alignment and offset
	immZero   // the memory index, of which there is one
	immI32
	immI64
	immBytes4
	immBytes8
	immRefType
	immMisc
	immVector
)

var immediates = func() (t [256]immediate) {
	set := func(imm immediate, from, to int) {
		for op := from; op <= to; op++ {
			t[op] = imm
		}
	}
	set(immNone, 0x00, 0x01)  // unreachable, nop
	set(immBlock, 0x02, 0x04) // block, loop, if
	set(immNone, opElse, opElse)
	set(immNone, opEnd, opEnd)
	set(immLabel, 0x0c, 0x0d) // br, br_if
	set(immBranchTable, 0x0e, 0x0e)
	set(immNone, 0x0f, 0x0f) // return
	set(immFunction, opCall, opCall)
	set(immCallIndirect, opCallIndirect, opCallIndirect)
	set(immNone, 0x1a, 0x1b) // drop, select
	set(immSelect, 0x1c, 0x1c)
	set(immLocal, 0x20, 0x22)
	set(immGlobal, 0x23, 0x24)
	set(immTable, 0x25, 0x26)        // table.get, table.set
	set(immAccess, 0x28, 0x3e)       // loads and stores
	set(immZero, 0x3f, opMemoryGrow) // memory.size, memory.grow
	set(immI32, opI32Const, opI32Const)
	set(immI64, opI64Const, opI64Const)
	set(immBytes4, opF32Const, opF32Const)
	set(immBytes8, opF64Const, opF64Const)
	set(immNone, 0x45, 0xc4) // comparisons, arithmetic, conversions, sign extension
	set(immRefType, opRefNull, opRefNull)
	set(immNone, 0xd1, 0xd1) // ref.is_null
	set(immFunction, opRefFunc, opRefFunc)
	set(immMisc, opPrefixMisc, opPrefixMisc)
	set(immVector, opPrefixVector, opPrefixVector)
	return t
}()

// proposal names what an unknown opcode belongs to, for the error.
func proposal(op byte) string {
	switch op {
	case 0x06, 0x07, 0x08, 0x09, 0x0a, 0x18, 0x19, 0x1f:
		return " (exceptions)"
	case 0x12, 0x13:
		return " (tail calls)"
	case 0x14, 0x15, 0xd4, 0xd5, 0xd6:
		return " (typed references)"
	case 0xd3, 0xfb:
		return " (garbage collection)"
	case 0xfe:
		return " (threads)"
	}
	return ""
}

// vectorImmediates skips what follows a vector opcode.
func vectorImmediates(r *reader, at int, sub uint32) {
	switch {
	case sub <= 11, sub == 92, sub == 93: // loads, splats, store
		access(r)
	case sub == vecConst, sub == 13: // const, shuffle
		r.bytes(16)
	case sub >= 21 && sub <= 34: // lanes
		r.byte()
	case sub >= 84 && sub <= 91: // loads and stores of lanes
		access(r)
		r.byte()
	case sub == 154, sub == 162, sub == 165, sub == 166, sub == 175, sub == 176, sub == 178, sub == 179, sub == 180,
		sub == 187, sub == 194, sub == 197, sub == 198, sub == 207, sub == 208, sub == 210, sub == 211, sub == 212,
		sub == 226, sub == 238, sub > 255:
		r.fail(ErrUnsupported, at, "vector opcode %d", sub)
	}
}

// access skips the alignment and offset of a load or store. Larger alignments carry flags of later
// proposals.
func access(r *reader) {
	at := r.pos
	if align := r.u32(); align >= 32 {
		r.fail(ErrUnsupported, at, "memory access flags %#x (several memories)", align)
	}
	r.u32()
}
