// Package sdk is for authors of plugins in Go. A sink takes batches of records upstream, a
// serializer turns records into the bodies that a sink sends:
//
//	func init() {
//		sdk.RegisterSink(sdk.Manifest{Name: "upper", Version: "1.0.0"}, &upper{})
//	}
//
//	func main() {}
//
//	func (u *upper) Init(ctx context.Context, cfg sdk.Config) error { return cfg.Decode(&u.cfg) }
//
//	func (u *upper) Deliver(ctx context.Context, b *sdk.Batch) error {
//		for i, r := range b.All() {
//			if err := u.send(ctx, r); err != nil {
//				b.Retry(i, err.Error())
//			}
//		}
//		return nil
//	}
//
// Build the module with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags="-s -w -buildid=" -o upper.wasm .
//
// The same code builds and tests natively; package sdktest stands in for the host. Connections
// are in sdk/net and files in sdk/files, so that a plugin asks the host only for what it imports.
//
// # How a plugin lives
//
// The host makes instances as it likes: several at a time, each with memory of its own, each
// thrown away after a fault or after long use. Keep nothing in memory that must outlast a call.
// Calls on one instance come one at a time. Between calls the whole guest is frozen, goroutines
// and timers too; at the start of each call goroutines that wait on a connection get a turn.
//
// # What it does not promise
//
// A goroutine that computes without a pause is not preempted: the context's deadline is noticed
// where the code asks for it, and a plugin that does not is ended by the host. A panic in Init,
// Deliver or Serialize becomes an error with its stack; a panic in another goroutine ends the
// instance. Delivery is at least once: a batch, or part of it, may come again, so make repeats
// harmless by [AppendMessageID] or the record's position.
package sdk
