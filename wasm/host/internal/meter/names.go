package meter

// nameSection is the custom section that names things for stack traces.
const nameSection = "name"

const (
	subModuleName = iota
	subFunctionNames
)

// names returns the name section with the module name and the moved function names, or without any
// when it is not well formed: names are no reason to refuse a module. Names of locals and other things
// are left out.
func (e *emitter) names(s section) []byte {
	r := &reader{src: e.src, pos: s.start, end: s.end}
	none := appendName(nil, r.name())
	out := none
	for r.more() {
		id := r.byte()
		size := r.u32()
		sub := r.sub(size)
		content := e.src[sub.pos:sub.end]
		switch id {
		case subModuleName:
			sub.name()
		case subFunctionNames:
			content = e.functionNames(sub)
		default:
			continue
		}
		if sub.err != nil || sub.more() {
			return none
		}
		out = append(out, id)
		out = appendU32(out, uint32(len(content)))
		out = append(out, content...)
	}
	if r.err != nil {
		return none
	}
	return out
}

func (e *emitter) functionNames(r *reader) []byte {
	n := r.count(2)
	var items []byte
	added := uint32(1)
	name := func(index uint32, name string) {
		items = appendU32(items, index)
		items = appendName(items, name)
	}
	yielded := false
	for i := uint32(0); i <= n && r.err == nil; i++ {
		index := e.refill
		if i < n {
			index = e.moved(e.index(r, e.funcs(), "function"))
		}
		if !yielded && index > e.yield { // in order of index
			name(e.yield, YieldModule+"."+YieldName)
			yielded = true
			added++
		}
		if i < n {
			name(index, r.name())
		} else {
			name(index, "statesman.refill")
		}
	}
	return append(appendU32(nil, n+added), items...)
}
