// Package server is the agent's local HTTP API: a handler over a statesman.Store, guarded against
// web pages and against clients that send too much or too slowly. Package agent/api describes the
// shapes and has the client; openapi.yaml describes the same for everybody else and is served by
// the handler itself.
//
// # Guards, in their order
//
// Host must be one that this listener answers to, so that a name which was pointed at loopback
// (DNS rebinding) reaches nothing. A request that a browser marks as coming from another site, by
// Origin or Sec-Fetch-Site, is refused, reads included. Over TCP a bearer token is required. A
// POST must be application/json, which a page cannot send unasked. Bodies, headers and times are
// bounded.
//
// # Streams
//
// A feed reads the store at its own pace and holds no lock and no queue while its client is slow:
// writers never wait for a reader, and a reader misses nothing. A client that takes nothing for
// [Options.WriteTimeout] is cut off and resumes by its last cursor. Streams end when the Done
// channel of the options closes.
//
// # What it does not promise
//
// Whoever may connect to the socket may do everything; there are no scopes yet. Nothing is
// compressed. No CORS: pages of other origins cannot use this API at all.
package server
