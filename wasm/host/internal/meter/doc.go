// Package meter rewrites a core WebAssembly module so that its code comes back to the host every so
// many steps. The host can then look at a deadline, notice a cancellation, count what the guest has
// used and let Go's garbage collector stop the world, without the runtime's own interruption checks.
//
// # What is injected
//
// Rewrite adds one import, [YieldModule].[YieldName] of type (i32 steps) → (), one private mutable
// counter and one private function that calls the import. The counter goes down
//
//   - at each loop header,
//   - at the entry of each function that calls, and of each one too long to go uncharged,
//   - before each memory.fill, memory.copy, memory.init, memory.grow, table.fill, table.copy,
//     table.init and table.grow, by the length asked for.
//
// When it reaches zero, yield is called with the number of steps since the last yield (at least
// [Options.Interval]), and the counter starts afresh. One step is a pass of a loop or a call, with up
// to 256 instructions of its own; longer code costs a step more for each 256. A bulk operation costs a
// step per 32 bytes or 4 table elements, memory.grow 2048 steps per page.
//
// # The yield contract
//
// The host defines the import. It adds steps to what the instance has used and returns to let the
// guest go on, or panics with an error to stop it; the instance is then thrown away. It must not call
// back into the same instance. Steps left in the counter when a call ends are carried to the next one,
// so a call that ends early may report none at all. A start function is metered like any other and
// may yield during instantiation.
//
// # What else changes
//
// Function indices move by one, so calls, references, exports, the start section and element segments
// are rewritten. Memory and tables get a maximum, lowered to the limits of [Options], so that growing
// past it fails inside the guest. Of the name section the module and function names are kept; every
// other custom section is kept to the byte.
//
// # What is accepted
//
// Core 1.0 with mutable globals, sign extension, saturating conversions, multi-value, bulk memory,
// reference types and 128-bit SIMD: what Go, clang, rustc and asc emit. Anything else is refused with
// the byte offset: threads, exceptions, tail calls, memory64, several memories, typed references,
// garbage collection, relaxed SIMD. Indices are checked against the original module, so a guest cannot
// name what was injected, and prefixed opcodes must be encoded minimally, because wazero reads some of
// them byte by byte.
//
// # What it does not promise
//
// It does not validate: types, alignment and stack discipline are left to the compiler that takes the
// result. It bounds steps, not time: a step may be slow, host functions are not charged, and neither
// is copying data and element segments at instantiation. It does not bound the native stack; the
// runtime does. It keeps single functions from taking the compiler minutes, but a module of many takes
// as long as it takes; compile it with a context. It does not bound the module's size; the caller does,
// before reading it.
package meter
