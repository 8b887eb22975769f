// Command file-jsonl is the sink plugin that appends one line per record to a file: the body that
// the outbox's serializer made or, without one, the statesman.state-change/v1 message. Lines are
// on disk before their records count as delivered.
//
// Settings: file (string, required), "grant/path" as in "out/changes.jsonl".
//
// A line that a crash left unfinished is moved to FILE.torn when the plugin starts. Delivery is at
// least once: the lines of a batch whose acknowledgement was lost come again. The file must not
// have another writer, and it is neither rotated nor followed when somebody moves it away.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/statesman-dev/statesman/wasm/sdk"
	"github.com/statesman-dev/statesman/wasm/sdk/files"
)

var manifest = sdk.Manifest{
	Name:        "file-jsonl",
	Version:     "1.0.0",
	Description: "Appends one line per record to a file.",
	Wants: []sdk.Want{
		{Capability: "files", Value: "out", Reason: "the directory that holds the file"},
	},
	Config: json.RawMessage(`{
		"type": "object", "additionalProperties": false, "required": ["file"],
		"properties": {"file": {"type": "string", "description": "grant/path, such as out/changes.jsonl"}}
	}`),
}

func init() { sdk.RegisterSink(manifest, &sink{}) }

func main() {}

type sink struct {
	cfg struct {
		File string `json:"file"`
	}
	file *files.File
	buf  []byte // the lines of one batch
	torn bool   // a failed write could not be undone
}

// Init implements sdk.Sink.
func (s *sink) Init(ctx context.Context, cfg sdk.Config) (err error) {
	if err := cfg.Decode(&s.cfg); err != nil {
		return err
	}
	if s.cfg.File == "" {
		return sdk.Operator(errors.New("config key file is missing; set it to grant/path, such as out/changes.jsonl"))
	}
	if s.file, err = files.Open(ctx, s.cfg.File, files.Write|files.Create); err != nil {
		return err
	}
	return s.mend(ctx)
}

// Deliver implements sdk.Sink.
func (s *sink) Deliver(ctx context.Context, b *sdk.Batch) error {
	if s.torn {
		if err := s.mend(ctx); err != nil {
			return err
		}
	}
	s.buf = s.buf[:0]
	for i := range b.Len() {
		if err := s.addLine(b, i); err != nil {
			b.Reject(i, err.Error())
		}
	}
	before, err := s.file.Size()
	if err != nil {
		return err
	}
	if _, err = s.file.Write(s.buf); err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		// Take back what may be half there, also after a failed sync: whether those bytes ever
		// reach the disk is unknown, and written again they are surely tried again.
		s.torn = s.file.Truncate(before) != nil
		return err
	}
	return nil
}

// addLine appends the line of record i to buf, or leaves buf as it was.
func (s *sink) addLine(b *sdk.Batch, i int) error {
	start := len(s.buf)
	switch {
	case !b.HasBodies():
		line, err := sdk.AppendMessage(s.buf, b, i, sdk.MessageOptions{})
		if err != nil {
			return err
		}
		s.buf = line
	case b.Body(i) == nil:
		return errors.New("the serializer made no body")
	default:
		s.buf = append(s.buf, b.Body(i)...)
	}
	if bytes.IndexByte(s.buf[start:], '\n') >= 0 {
		s.buf = s.buf[:start]
		return errors.New("the body has a line break; use a serializer that writes one line, such as json")
	}
	s.buf = append(s.buf, '\n')
	return nil
}

// Close implements sdk.Closer.
func (s *sink) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
