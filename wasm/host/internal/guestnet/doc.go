// Package guestnet gives a guest connections that never block it. Names are resolved, addresses
// checked and connections made by goroutines of the host; the guest reads from and writes to
// bounded buffers and waits for news with an event count.
//
// An event count, not a wake-up token: with several waiters behind one guest thread a token is
// lost when the wrong one takes it. Who waits names the count it saw before it last tried, and
// returns at once when anything happened since.
//
// # What it does not promise
//
// No bandwidth limit, no TLS and no UDP. A target that is granted is trusted to be what it says:
// only its address is checked, not who answers there.
package guestnet
