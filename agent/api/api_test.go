package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
)

func fullRecord() *statesman.Record {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	return &statesman.Record{Address: statesman.MustAddress("app", "a/b", "P 1"), Revision: 3, Position: 9, OccurredAt: at,
		Operation: statesman.Faulted, Status: statesman.StatusFaulted, ValueType: "t", SchemaVersion: 2, Payload: []byte(`{"x": 1}`),
		Envelope:   &statesman.Envelope{ContentType: "application/vnd.x+json", SerializerID: "s/v1", Fingerprint: "f", FormatVersion: 4},
		FreshUntil: at.Add(1), ServeUntil: at.Add(2), Source: "src", CorrelationID: "co", CausationID: "ca", CommitID: "id",
		Metadata: map[string]string{"k": "v"},
		Error:    &statesman.RecordError{Code: "c", Message: "m", ExceptionType: "e", Detail: "d", IsTransient: true}}
}

func TestRecordSurvivesJSON(t *testing.T) {
	empty := fullRecord()
	empty.Payload, empty.Error, empty.FreshUntil, empty.ServeUntil = []byte{}, nil, time.Time{}, time.Time{}
	none := fullRecord()
	none.Payload, none.Envelope, none.Metadata = nil, nil, nil
	for name, want := range map[string]*statesman.Record{"full": fullRecord(), "empty payload": empty, "no payload": none} {
		b, err := json.Marshal(FromRecord(want))
		if err != nil {
			t.Fatal(err)
		}
		var shape Record
		if err := json.Unmarshal(b, &shape); err != nil {
			t.Fatal(err)
		}
		got, err := shape.Statesman()
		if err != nil || !got.Equal(want) {
			t.Errorf("%s: got %+v, %v, want %+v from %s", name, got, err, want, b)
		}
	}
	if FromRecord(nil) != nil || (*Record)(nil).WithoutPayload() != nil {
		t.Error("nil became something")
	}
}

// TestRecordOnTheWire holds the exact bytes: they are what scripts parse.
func TestRecordOnTheWire(t *testing.T) {
	b, err := json.Marshal(FromRecord(fullRecord()))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"address":"app::a/b::P 1","root":"app","path":"a/b","partition":"P 1","revision":3,"position":9,` +
		`"occurredAt":"2026-01-02T03:04:05.000000678Z","operation":"faulted","status":"faulted","valueType":"t","schemaVersion":2,"source":"src",` +
		`"contentType":"application/vnd.x+json","serializerId":"s/v1","fingerprint":"f","formatVersion":4,` +
		`"freshUntil":"2026-01-02T03:04:05.000000679Z","serveUntil":"2026-01-02T03:04:05.00000068Z","correlationId":"co","causationId":"ca","commitId":"id",` +
		`"metadata":{"k":"v"},"error":{"code":"c","message":"m","exceptionType":"e","detail":"d","isTransient":true},` +
		`"payloadSize":8,"payload":"eyJ4IjogMX0=","value":{"x":1}}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestRecordRefuses(t *testing.T) {
	for name, change := range map[string]func(*Record){
		"address": func(r *Record) { r.Path = ".." }, "operation": func(r *Record) { r.Operation = "exploded" }, "status": func(r *Record) { r.Status = "" },
	} {
		shape := FromRecord(fullRecord())
		change(shape)
		if got, err := shape.Statesman(); !errors.Is(err, statesman.ErrInvalid) {
			t.Errorf("bad %s: %+v, %v, want ErrInvalid", name, got, err)
		}
	}
}

func TestConditionShape(t *testing.T) {
	for _, c := range []statesman.Condition{statesman.Any(), statesman.Absent(), statesman.AtRevision(7)} {
		shape, err := FromCondition(c)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := shape.Statesman(); err != nil || got != c {
			t.Errorf("%v came back as %v, %v", c, got, err)
		}
	}
	if _, err := FromCondition(statesman.Condition{}); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("the zero condition: %v, want ErrInvalid", err)
	}
	zero := int64(0)
	if _, err := (Condition{Revision: &zero}).Statesman(); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("revision 0: %v, want ErrInvalid", err)
	}
}

func TestHeaderEncoding(t *testing.T) {
	for _, s := range []string{"", "plain", " edges ", "ü\n\x00\x7f", "100%", `{"a":"b c"}`, " ", "%41"} {
		h := EncodeHeader(s)
		if strings.ContainsFunc(h, func(r rune) bool { return r < ' ' || r > '~' }) || h != strings.TrimSpace(h) {
			t.Errorf("%q is encoded as %q, which no header carries", s, h)
		}
		if got, err := DecodeHeader("X", h); err != nil || got != s {
			t.Errorf("%q came back as %q, %v", s, got, err)
		}
	}
	if _, err := DecodeHeader("X", "%zz"); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("a broken escape: %v, want ErrInvalid", err)
	}
}

// TestErrorsCrossTheWire sends each sentinel through a Problem and back.
func TestErrorsCrossTheWire(t *testing.T) {
	for _, want := range []error{statesman.ErrNotFound, statesman.ErrConflict, statesman.ErrInvalid, statesman.ErrTooLarge, statesman.ErrClosed,
		statesman.ErrCorrupt, statesman.ErrLineage, statesman.ErrLocked, statesman.ErrUnknown, statesman.ErrFull, errors.ErrUnsupported,
		ErrPermission, context.DeadlineExceeded} {
		wrapped := &statesman.Error{Op: "get", Store: "s", Err: fmt.Errorf("because: %w", want), Hint: "do this"}
		p := ProblemOf(wrapped)
		if p.Status < 400 || p.Title == "" || p.Type != "urn:statesman:problem:"+string(p.Code) {
			t.Errorf("%v became %+v", want, p)
		}
		got := errorOf("get", *p, statesman.Condition{})
		if !errors.Is(got, want) || HintOf(got) != "do this" || got.Error() != wrapped.Error() {
			t.Errorf("%v came back as %v with hint %q", want, got, HintOf(got))
		}
		if again := ProblemOf(got); *again != *p {
			t.Errorf("passed on, %+v became %+v", p, again)
		}
	}
	// A timeout that leaves the outcome open must not look like a plain timeout.
	if p := ProblemOf(fmt.Errorf("%w: %w", statesman.ErrUnknown, context.DeadlineExceeded)); p.Code != CodeUnknown {
		t.Errorf("unknown outcome by a timeout is %s", p.Code)
	}
	if p := ProblemOf(errors.New("odd")); p.Code != CodeInternal || p.Status != 500 {
		t.Errorf("an unknown error became %+v", p)
	}
	if p := NewProblem("no such code", "x"); p.Code != CodeInternal {
		t.Errorf("an unknown code became %+v", p)
	}
}

func TestConflictCrossesTheWire(t *testing.T) {
	head := fullRecord()
	p := ProblemOf(&statesman.ConflictError{Address: head.Address, Condition: statesman.Absent(), Current: head, Index: 4})
	if p.Current.Payload != nil || *p.CurrentRevision != 3 {
		t.Errorf("problem %+v, want revision 3 without payload", p)
	}
	var c *statesman.ConflictError
	if err := errorOf("put", *p, statesman.Absent()); !errors.As(err, &c) || c.Index != 4 || c.Current.Revision != 3 || c.Address != head.Address || c.Condition != statesman.Absent() {
		t.Errorf("came back as %+v", c)
	}
	gone := ProblemOf(&statesman.ConflictError{Address: head.Address, Condition: statesman.AtRevision(1)})
	if err := errorOf("put", *gone, statesman.AtRevision(1)); !errors.As(err, &c) || c.Current != nil {
		t.Errorf("a conflict without a head came back as %+v", c)
	}
}

func TestUnreachable(t *testing.T) {
	for name, c := range map[string]*Client{
		"no socket": Unix(filepath.Join(t.TempDir(), "none"), nil),
		"no port":   TCP(closedPort(t), "t", nil),
	} {
		_, err := c.Status(t.Context())
		var u *UnreachableError
		if !errors.Is(err, ErrUnreachable) || !errors.As(err, &u) || u.Where != c.Where() || HintOf(err) == "" {
			t.Errorf("%s: %v with hint %q, want ErrUnreachable that names %s", name, err, HintOf(err), c.Where())
		}
		if _, err := c.Put(t.Context(), statesman.MustAddress("a", "b", ""), statesman.Any(), strings.NewReader("v"), nil); !errors.Is(err, ErrUnreachable) || errors.Is(err, statesman.ErrUnknown) {
			t.Errorf("%s: put: %v, want ErrUnreachable: nothing can have happened", name, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Live(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: cancelled: %v", name, err)
		}
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// oddServer answers every request by h.
func oddServer(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c := TCP(strings.TrimPrefix(srv.URL, "http://"), "tok\n", nil)
	t.Cleanup(c.Close)
	return c
}

func TestLostAnswerIsUnknown(t *testing.T) {
	c := oddServer(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	a := statesman.MustAddress("a", "b", "")
	if _, err := c.Put(t.Context(), a, statesman.Any(), strings.NewReader("v"), nil); !errors.Is(err, statesman.ErrUnknown) || HintOf(err) == "" {
		t.Errorf("put: %v, want ErrUnknown with a way out", err)
	}
	if _, err := c.Get(t.Context(), a, nil); err == nil || errors.Is(err, statesman.ErrUnknown) {
		t.Errorf("get: %v, want an error that is not ErrUnknown", err)
	}
}

func TestOddAnswers(t *testing.T) {
	a := statesman.MustAddress("a", "b", "")
	for name, h := range map[string]http.HandlerFunc{
		"another program": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "nope", 404) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		},
		"an unknown code": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(418)
			_, _ = io.WriteString(w, `{"code":"tea"}`)
		},
		"half an answer":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"schema":`) },
		"not JSON":         func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `<html>`) },
		"a mute 500":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"an endless error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); _, _ = w.Write(make([]byte, 2<<20)) },
	} {
		c := oddServer(t, h)
		if st, err := c.Status(t.Context()); err == nil || err.Error() == "" {
			t.Errorf("%s: status %+v, %v, want an error", name, st, err)
		}
		for rec, err := range c.History(t.Context(), a, nil) {
			if err == nil {
				t.Errorf("%s: history yields %+v", name, rec)
			}
		}
	}
}

func TestBrokenStreams(t *testing.T) {
	const good = `{"cursor":"x","record":{"root":"a","path":"b","partition":"default","revision":1}}`
	for name, c := range map[string]struct {
		body  string
		want  error
		steps int
	}{
		"ends":               {"data: " + good + "\n\n", ErrStreamEnded, 1},
		"ends in an event":   {"data: " + good + "\n\ndata: {", ErrStreamEnded, 1},
		"comments and ids":   {": hello\nretry: 5\n\nid: 7\n\ndata: " + good + "\r\n\r\n", ErrStreamEnded, 1},
		"data on two lines":  {"data: {\"cursor\":\"x\",\ndata: \"gap\":{\"first\":1,\"last\":2}}\n\n", ErrStreamEnded, 1},
		"a problem":          {"event: problem\ndata: {\"problem\":{\"code\":\"corrupt\",\"detail\":\"d\"}}\n\ndata: " + good + "\n\n", statesman.ErrCorrupt, 0},
		"an event of others": {"data: hello\n\n", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			cl := oddServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer tok" || r.Header.Get("Accept") != SSEContentType {
					t.Errorf("headers %v", r.Header)
				}
				_, _ = io.WriteString(w, c.body)
			})
			steps, last := 0, error(nil)
			for ch, err := range cl.Feed(t.Context(), &FeedOptions{Follow: true}) {
				if last = err; err == nil {
					steps++
					if ch.Cursor != "x" {
						t.Errorf("change %+v", ch)
					}
				}
			}
			if steps != c.steps || last == nil || c.want != nil && !errors.Is(last, c.want) {
				t.Errorf("%d changes, then %v, want %d, then %v", steps, last, c.steps, c.want)
			}
		})
	}
}

func TestLinesWithAProblem(t *testing.T) {
	c := oddServer(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "{\"record\":{\"revision\":2}}\n\n{\"problem\":{\"code\":\"closed\"}}\n{\"record\":{\"revision\":1}}\n")
	})
	var got []string
	for rec, err := range c.History(t.Context(), statesman.MustAddress("a", "b", ""), nil) {
		if err != nil {
			got = append(got, fmt.Sprint(errors.Is(err, statesman.ErrClosed)))
			continue
		}
		got = append(got, fmt.Sprint(rec.Revision))
	}
	if fmt.Sprint(got) != "[2 true]" {
		t.Errorf("got %v, want revision 2, then ErrClosed, then nothing", got)
	}
}

func TestWritesAreChecked(t *testing.T) {
	c := Unix("/nowhere", nil)
	if _, err := c.Put(t.Context(), statesman.Address{}, statesman.Any(), nil, nil); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("without an address: %v", err)
	}
	if _, err := c.Delete(t.Context(), statesman.MustAddress("a", "b", ""), statesman.Condition{}, nil); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("without a condition: %v", err)
	}
}
