// Package api is the local API of statesman-agent as Go sees it: the JSON shapes, the error codes,
// and a [Client] that talks to a running agent over its Unix socket or over loopback TCP.
//
// The shapes are the contract for every other language as well; /v1/openapi.yaml of a running
// agent describes the same. Names in JSON are camel case, instants are RFC 3339 in UTC, sizes are
// bytes, durations are seconds. New fields may be added: readers ignore what they do not know.
//
// # What it does not promise
//
// The client never retries: a write whose answer was lost may have happened, and only a commit id
// makes repeating it safe. Streams are not resumed behind the caller's back; the cursor of the
// last change is all that is needed to go on.
package api
