// Package host runs plugins: WebAssembly modules that an operator drops into a folder and that
// serve an outbox as sink or serializer. ABI 1 of wasm/abi is the contract between the two.
//
// # Parts
//
//   - [Load] makes a [Module], one version of a plugin: checked, rewritten so that every loop
//     comes back to the host, compiled, tried once.
//   - [Ref] is the place where the current version lives. Versions are swapped under its users;
//     a version that is replaced finishes its calls first.
//   - [Sink] and [Serializer] serve one outbox through a Ref.
//   - [Manager] watches the folder and keeps a Ref for each plugin.
//
// # What holds a guest
//
// The import section is what a guest asks for, the operator's [Grant] is what it gets, and the
// comparison happens before a byte of it runs. Linear memory has a maximum and lies outside the
// Go heap. Every call has a deadline; the rewritten code comes back every 20,000 steps, where the
// host looks at the clock. An instance that trapped, exited, was late, or answered nonsense is
// thrown away; the plugin gets a new one.
//
// # Life of a goroutine
//
// A Manager has one goroutine, which Close ends and waits for. A connection of a guest has two,
// which end with its instance. A replaced version drains in a goroutine that Ref.Close waits for.
//
// # What it does not promise
//
// A guest shares the process: a bug in the compiler is a bug in the agent. A step is bounded, a
// system call is not: a disk that hangs in an fsync holds the call that waits for it. Recursion
// is bounded by the runtime's stack (about 100 MB), which does not count against the memory
// limit. What a guest does with a granted target or directory is its own business.
package host
