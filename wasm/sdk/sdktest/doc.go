// Package sdktest runs a plugin natively under plain go test, against a stand-in for the host:
//
//	host := sdktest.New(t, &sdktest.Options{Files: map[string]string{"out": t.TempDir()}})
//	p := host.Sink(&sink{})
//	if err := p.Init(map[string]any{"file": "out/a.jsonl"}); err != nil { … }
//	res, err := p.Deliver(sdktest.Batch{Records: []sdktest.Record{{Path: "orders/7", Payload: []byte("1")}}})
//
// Calls go through the frames and buffers that the exports of a module use, so what passes here
// has passed the SDK. Files are real files below the directories granted, connections real ones.
//
// It does not stand in for the walls: no limits of memory, time, handles or log lines, and
// goroutines run in parallel here and by turns in a guest. Test the module under the real host
// as well.
package sdktest
