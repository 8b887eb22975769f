package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	jetStreamWait  = 10 * time.Second // for one answer
	jetStreamBatch = 900              // the server refuses atomic batches above 1,000
)

// jetStream is the NATS server as a library with a client in the same process, without TCP: one
// stream in a file store with sync always. An address is a subject and its revision the stream
// sequence of its newest message, as in the NATS key-value bucket.
//
// Native publishes asynchronously with Nats-Expected-Last-Subject-Sequence, each writer waiting for
// its own acknowledgement. ApplyGroup is one atomic batch publish, for which the server syncs once.
type jetStream struct {
	server *server.Server
	conn   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream

	mu      sync.Mutex // guards following: one batch and one feed at a time
	batches int
	acks    *nats.Subscription
	pages   *nats.Subscription
}

func openJetStream(dir string, _ Options) (Store, error) {
	srv, err := server.NewServer(&server.Options{
		ServerName: "bench", JetStream: true, StoreDir: dir, SyncAlways: true,
		NoLog: true, NoSigs: true, DontListen: true, JetStreamMaxMemory: 1 << 30, JetStreamMaxStore: 1 << 36,
	})
	if err != nil {
		return nil, err
	}
	s := &jetStream{server: srv}
	srv.Start()
	if err := s.connect(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *jetStream) connect() (err error) {
	if !s.server.ReadyForConnections(jetStreamWait) {
		return errors.New("the NATS server was not ready in time")
	}
	if s.conn, err = nats.Connect("", nats.InProcessServer(s.server)); err != nil {
		return err
	}
	if s.js, err = jetstream.New(s.conn, jetstream.WithPublishAsyncMaxPending(4096)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), jetStreamWait)
	defer cancel()
	s.stream, err = s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: "S", Subjects: []string{"r.>"}, Storage: jetstream.FileStorage,
		AllowDirect: true, AllowAtomicPublish: true, Duplicates: 100 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	if s.acks, err = s.conn.SubscribeSync(nats.NewInbox()); err != nil {
		return err
	}
	if s.pages, err = s.conn.SubscribeSync(nats.NewInbox()); err != nil {
		return err
	}
	return s.pages.SetPendingLimits(-1, -1)
}

func subject(addr string) string { return "r." + strings.ReplaceAll(addr, "/", ".") }

func fromSubject(subj string) string {
	return strings.ReplaceAll(strings.TrimPrefix(subj, "r."), ".", "/")
}

func message(r *Request) *nats.Msg {
	return &nats.Msg{Subject: subject(r.Addr.Key), Data: r.Payload, Header: nats.Header{
		jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(r.Expect, 10)}}}
}

func (s *jetStream) Append(r *Request) error {
	f, err := s.js.PublishMsgAsync(message(r))
	if err != nil {
		return err
	}
	select {
	case ack := <-f.Ok():
		r.Rev, r.Pos = ack.Sequence, ack.Sequence
		return nil
	case err := <-f.Err():
		if ae, ok := errors.AsType[*jetstream.APIError](err); ok && ae.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
			return ErrConflict
		}
		return err
	}
}

func (s *jetStream) ApplyGroup(rs []*Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(rs) > 0 {
		n := min(len(rs), jetStreamBatch)
		if err := s.applyLocked(rs[:n]); err != nil {
			return err
		}
		rs = rs[n:]
	}
	return nil
}

// applyLocked publishes one atomic batch. The server refuses the whole batch for one wrong
// expectation; then each request is judged on its own.
func (s *jetStream) applyLocked(rs []*Request) error {
	s.batches++
	id := strconv.Itoa(s.batches)
	for i, r := range rs {
		m := message(r)
		m.Header.Set("Nats-Batch-Id", id)
		m.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i+1))
		if i == len(rs)-1 {
			m.Header.Set("Nats-Batch-Commit", "1")
			m.Reply = s.acks.Subject
		}
		if err := s.conn.PublishMsg(m); err != nil {
			return err
		}
	}
	answer, err := s.acks.NextMsg(jetStreamWait)
	if err != nil {
		return err
	}
	var ack struct {
		Seq   uint64              `json:"seq"`
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return fmt.Errorf("answer to a batch: %w", err)
	}
	if ack.Error != nil {
		for _, r := range rs {
			r.Err = s.Append(r)
		}
		return nil
	}
	for i, r := range rs {
		r.Rev = ack.Seq - uint64(len(rs)-1-i)
		r.Pos = r.Rev
	}
	return nil
}

func (s *jetStream) Head(a Address) (uint64, []byte, error) {
	m, err := s.stream.GetLastMsgForSubject(context.Background(), subject(a.Key))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil, ErrNotFound
	}
	if err != nil {
		return 0, nil, err
	}
	return m.Sequence, m.Data, nil
}

func (s *jetStream) At(a Address, rev uint64) ([]byte, error) {
	m, err := s.stream.GetMsg(context.Background(), rev)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.Subject != subject(a.Key) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

// Feed asks for pages of direct gets, each as large as the server allows.
func (s *jetStream) Feed(after uint64, limit int, fn func(Entry) error) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for done := 0; limit == 0 || done < limit; {
		page := 1000
		if limit > 0 {
			page = min(page, limit-done)
		}
		n, last, err := s.pageLocked(after, page, fn)
		if err != nil || n == 0 {
			return last, err
		}
		after, done = last, done+n
	}
	return after, nil
}

func (s *jetStream) pageLocked(after uint64, limit int, fn func(Entry) error) (n int, last uint64, err error) {
	ask := fmt.Appendf(nil, `{"seq":%d,"batch":%d,"max_bytes":8388608}`, after+1, limit)
	if err := s.conn.PublishRequest("$JS.API.DIRECT.GET.S", s.pages.Subject, ask); err != nil {
		return 0, after, err
	}
	for last = after; ; n++ {
		m, err := s.pages.NextMsg(jetStreamWait)
		if err != nil {
			return n, last, err
		}
		if status := m.Header.Get("Status"); status == "204" || status == "404" { // end of page, end of stream
			return n, last, nil
		} else if status != "" {
			return n, last, fmt.Errorf("direct get: status %s %s", status, m.Header.Get("Description"))
		}
		seq, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
		if err != nil {
			return n, last, fmt.Errorf("direct get: %w", err)
		}
		addr := fromSubject(m.Header.Get(jetstream.SubjectHeader))
		if err := fn(Entry{Pos: seq, Rev: seq, Addr: []byte(addr), Payload: m.Data}); err != nil {
			return n, last, err
		}
		last = seq
	}
}

func (s *jetStream) Close() error {
	if s.conn != nil {
		s.conn.Close()
	}
	s.server.Shutdown()
	s.server.WaitForShutdown()
	return nil
}
