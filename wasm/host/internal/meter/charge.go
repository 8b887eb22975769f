package meter

// charger writes the charges of one function.
//
// Each charge stores the counter, so that it is up to date wherever the function may be left. Within a
// loop that calls nothing the local copy is up to date as well, and the charges in it use that: a
// counter which goes through memory costs each pass of a short loop the time from a store to the load
// after it, a register costs next to nothing.
type charger struct {
	*emitter
	local       uint32 // the copy of the counter; the next one is for lengths
	loaded      bool   // the copy is up to date
	loadedUntil int    // the end of the loop for which it was loaded
}

// load brings the copy up to date.
func (c *charger) load(b []byte) []byte {
	b = appendU32(append(b, opGlobalGet), c.counter)
	return appendU32(append(b, opLocalSet), c.local)
}

// charge takes the steps of d off the counter and calls refill at zero. The counter is above zero
// between charges and no charge is over 1<<30, so it cannot wrap round.
func (c *charger) charge(b []byte, d edit) []byte {
	length := c.local + 1
	if d.kind != editStep {
		b = appendU32(append(b, opLocalTee), length) // it stays on the stack for the operation
	}
	if c.loaded {
		b = appendU32(append(b, opLocalGet), c.local)
	} else {
		b = appendU32(append(b, opGlobalGet), c.counter)
	}
	if d.kind != editStep {
		b = appendU32(append(b, opLocalGet), length)
	}
	switch d.kind {
	case editStep:
		b = appendI32(append(b, opI32Const), int32(d.value))
	case editBytes, editElements:
		b = appendI32(append(b, opI32Const), int32(d.value))
		b = append(b, opI32ShrU)
	case editPages:
		// A request for more than the 65,536 pages there can be fails at once, so that it does not
		// matter which bits of it are charged.
		b = appendI32(append(b, opI32Const), 2*maxMemoryPages-1)
		b = append(b, opI32And)
		b = appendI32(append(b, opI32Const), int32(d.value))
		b = append(b, opI32Shl)
	}
	b = append(b, opI32Sub)
	b = appendU32(append(b, opLocalTee), c.local)
	b = appendU32(append(b, opGlobalSet), c.counter)
	b = appendU32(append(b, opLocalGet), c.local)
	b = append(b, opI32Const, 0, opI32LeS, opIf, blockVoid)
	b = appendU32(append(b, opCall), c.refill)
	if c.loaded {
		b = c.load(b)
	}
	return append(b, opEnd)
}
