// Package agent puts the parts together and runs them: a store that it is given, the outboxes of
// the configuration, retention, plugins, and the local API.
//
// # Order
//
// The program opens the lock, the store and the tier, then the plugins, and hands them over. Start
// binds the sockets, so that a taken one is known before anything is sent, starts the outboxes and
// retention, and only then serves. Stop goes the other way: the API drains, outboxes save their
// cursors and give their leases back, retention ends, plugins are unloaded, the store is closed.
// Stop waits for every goroutine that Start began.
//
// # Faults are states
//
// An upstream that is away, a plugin that is missing or broken, a wrong password: none of these
// keeps the agent from starting or from taking writes. Each is told in [Agent.Status], with its
// cause in one sentence and a way out. What is wrong with the configuration itself is an error of
// [New].
//
// # What it does not promise
//
// It opens no store and knows no provider; durability is the store's. It reads no configuration
// file and does not watch one: a change needs a restart.
package agent
