package server

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

func TestPutGetRoundTrip(t *testing.T) {
	r := newRig(t, Options{})
	a := address(t, "app::käse/ünïcode %2f?#::Tenant 7 %")
	opts := &api.PutOptions{ContentType: `application/json; charset="utf-8"`, ValueType: "straße%41", SchemaVersion: 3, Source: " edges ",
		CommitID: "c-1", CorrelationID: "korrelation-ü", CausationID: "x", Metadata: map[string]string{"K": "ö\n", "b": ""}}
	put, err := r.client.Put(t.Context(), a, statesman.Absent(), strings.NewReader(` {"a": 1}`), opts)
	if err != nil {
		t.Fatal(err)
	}
	if put.Revision != 1 || put.Payload != nil || put.Value != nil || *put.PayloadSize != 9 {
		t.Errorf("put answered %+v, want revision 1, 9 bytes, no payload", put)
	}
	got, err := r.client.Get(t.Context(), a, nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Payload) != ` {"a": 1}` || string(got.Value) != `{"a":1}` {
		t.Errorf("got payload %q and value %q", got.Payload, got.Value)
	}
	if got.ValueType != opts.ValueType || got.SchemaVersion != 3 || got.Source != opts.Source || got.CommitID != "c-1" ||
		got.CorrelationID != opts.CorrelationID || got.CausationID != "x" || got.ContentType != opts.ContentType || !maps.Equal(got.Metadata, opts.Metadata) {
		t.Errorf("got %+v, want what was put: %+v", got, opts)
	}
	stored, err := r.store.Latest(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	back, err := got.Statesman()
	if err != nil || !back.Equal(stored) {
		t.Errorf("the record that arrived is %+v (%v), want %+v", back, err, stored)
	}
	if n := len(r.backend.wrote); n != 1 || r.backend.wrote[0] != a {
		t.Errorf("the backend was told of %v, want %v once", r.backend.wrote, a)
	}
}

func TestGetRaw(t *testing.T) {
	r := newRig(t, Options{})
	a := address(t, "app::x")
	r.put(t, a, `"v1"`)
	rec := r.put(t, a, `"v2"`)

	res, body := r.do(t, "GET", "/v1/states/app/x", "")
	if body != `"v2"` || res.Header.Get("ETag") != `"2"` || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %q with %v", body, res.Header)
	}
	if res.Header.Get(api.HeaderPosition) != strconv.FormatInt(rec.Position, 10) || res.Header.Get(api.HeaderStatus) != "ready" {
		t.Errorf("got headers %v, want position %d and status ready", res.Header, rec.Position)
	}
	if res, body = r.do(t, "GET", "/v1/states/app/x?rev=1", ""); body != `"v1"` || res.Header.Get("ETag") != `"1"` {
		t.Errorf("revision 1 is %q, ETag %s", body, res.Header.Get("ETag"))
	}
	if res, body = r.do(t, "HEAD", "/v1/states/app/x", ""); res.StatusCode != 200 || body != "" || res.ContentLength != 4 {
		t.Errorf("HEAD answered %d, %q, length %d", res.StatusCode, body, res.ContentLength)
	}
	if res, _ = r.do(t, "GET", "/v1/states/app/x", "", `If-None-Match: "2"`); res.StatusCode != http.StatusNotModified {
		t.Errorf("If-None-Match of the newest answered %d, want 304", res.StatusCode)
	}
	rc, contentType, err := r.client.Open(t.Context(), a, &api.GetOptions{Revision: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	if b, err := io.ReadAll(rc); err != nil || string(b) != `"v1"` || contentType != "application/json" {
		t.Errorf("Open read %q, %v, %q", b, err, contentType)
	}
}

func TestGetAt(t *testing.T) {
	r := newRig(t, Options{})
	a := address(t, "app::x")
	first := r.put(t, a, "1")
	second := r.put(t, a, "2")
	if got, err := r.client.Get(t.Context(), a, &api.GetOptions{At: second.OccurredAt}); err != nil || got.Revision != 2 {
		t.Errorf("at the second's instant: %+v, %v", got, err)
	}
	if got, err := r.client.Get(t.Context(), a, &api.GetOptions{At: second.OccurredAt.Add(-1)}); err != nil || got.Revision != 1 {
		t.Errorf("just before the second: %+v, %v", got, err)
	}
	_, err := r.client.Get(t.Context(), a, &api.GetOptions{At: first.OccurredAt.Add(-time.Hour)})
	if !errors.Is(err, statesman.ErrNotFound) || !strings.Contains(err.Error(), "newer") {
		t.Errorf("before everything: %v, want ErrNotFound that says so", err)
	}
}

func TestConditions(t *testing.T) {
	r := newRig(t, Options{})
	a := address(t, "app::x")
	put := func(c statesman.Condition, id string) (*api.Record, error) {
		return r.client.Put(t.Context(), a, c, strings.NewReader("v"), &api.PutOptions{CommitID: id})
	}
	if _, err := put(statesman.AtRevision(1), ""); !errors.Is(err, statesman.ErrConflict) {
		t.Errorf("at revision 1 of nothing: %v, want a conflict", err)
	}
	if _, err := put(statesman.Absent(), "one"); err != nil {
		t.Fatal(err)
	}
	_, err := put(statesman.Absent(), "two")
	var c *statesman.ConflictError
	if !errors.As(err, &c) || c.Current == nil || c.Current.Revision != 1 || c.Address != a || c.Condition != statesman.Absent() {
		t.Fatalf("absent again: %v, want a ConflictError with revision 1", err)
	}
	if rec, err := put(statesman.Absent(), "one"); err != nil || rec.Revision != 1 {
		t.Errorf("the same commit id again: %+v, %v, want the record it made", rec, err)
	}
	if rec, err := put(statesman.AtRevision(1), "three"); err != nil || rec.Revision != 2 {
		t.Errorf("at revision 1: %+v, %v", rec, err)
	}
	if _, err := put(statesman.Condition{}, ""); !errors.Is(err, statesman.ErrInvalid) {
		t.Errorf("zero condition: %v, want ErrInvalid", err)
	}
	res, body := r.do(t, "PUT", "/v1/states/app/x", "v", `If-Match: "1"`)
	if res.StatusCode != http.StatusPreconditionFailed || res.Header.Get("ETag") != `"2"` || !strings.Contains(body, `"currentRevision":2`) {
		t.Errorf("lost race: %d, ETag %s, %s", res.StatusCode, res.Header.Get("ETag"), body)
	}
	if len(r.backend.failed) == 0 {
		t.Error("the backend heard of no failed write")
	}
}

func TestDelete(t *testing.T) {
	r := newRig(t, Options{})
	a := address(t, "app::x")
	r.put(t, a, "1")
	rec, err := r.client.Delete(t.Context(), a, statesman.AtRevision(1), nil)
	if err != nil || rec.Revision != 2 || rec.Status != "cleared" || rec.PayloadSize != nil {
		t.Fatalf("delete: %+v, %v", rec, err)
	}
	res, body := r.do(t, "GET", "/v1/states/app/x", "")
	if res.StatusCode != http.StatusNotFound || res.Header.Get(api.HeaderStatus) != "cleared" || !strings.Contains(body, "format=record") {
		t.Errorf("raw get of a cleared state: %d %s %s", res.StatusCode, res.Header.Get(api.HeaderStatus), body)
	}
	if got, err := r.client.Get(t.Context(), a, nil); err != nil || got.Status != "cleared" {
		t.Errorf("the record itself: %+v, %v", got, err)
	}
}

func TestHistory(t *testing.T) {
	r := newRig(t, Options{})
	a := address(t, "app::x")
	for i := range 5 {
		r.put(t, a, strconv.Itoa(i))
	}
	for _, c := range []struct {
		opts *api.HistoryOptions
		want string
	}{
		{nil, "5 4 3 2 1"},
		{&api.HistoryOptions{Limit: 2}, "5 4"},
		{&api.HistoryOptions{Before: 3}, "2 1"},
		{&api.HistoryOptions{OldestFirst: true, Limit: 2, NoPayload: true}, "1 2"},
		{&api.HistoryOptions{Since: time.Now().Add(time.Hour)}, ""},
	} {
		var got []string
		for rec, err := range r.client.History(t.Context(), a, c.opts) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, strconv.FormatInt(rec.Revision, 10))
			if without := c.opts != nil && c.opts.NoPayload; without != (rec.Payload == nil) || *rec.PayloadSize != 1 {
				t.Errorf("%+v: payload %q, size %d", c.opts, rec.Payload, *rec.PayloadSize)
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%+v: got %q, want %q", c.opts, s, c.want)
		}
	}
	if _, body := r.do(t, "GET", "/v1/states/app/x?history&limit=1", ""); !strings.HasPrefix(body, `{"records":[{"address":"app::x::default"`) {
		t.Errorf("as one document: %s", body)
	}
	if _, body := r.do(t, "GET", "/v1/states/app/nothing?history", ""); body != "{\"records\":[]}\n" {
		t.Errorf("of an unknown address: %q", body)
	}
}

func TestEscapedPaths(t *testing.T) {
	r := newRig(t, Options{})
	r.put(t, address(t, "app::a/b"), "1")
	for _, path := range []string{"/v1/states/app/a/b", "/v1/states/app/a%2Fb", "/v1/states/APP/a//b", "/v1/states/app/A%5cB/"} {
		if res, body := r.do(t, "GET", path, ""); res.StatusCode != 200 || body != "1" {
			t.Errorf("GET %s: %d %q, want the state", path, res.StatusCode, body)
		}
	}
}

func TestBadInput(t *testing.T) {
	r := newRig(t, Options{})
	r.put(t, address(t, "app::x"), "1")
	const jsonHeader = "Content-Type: application/json"
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		code                     api.Code
		says                     string
	}{
		{"unknown address", "GET", "/v1/states/app/none", "", nil, 404, api.CodeNotFound, "none"},
		{"bad root", "GET", "/v1/states/a%20b/x", "", nil, 400, api.CodeInvalid, `root "a b"`},
		{"slash in the root", "GET", "/v1/states/a%2Fb/x", "", nil, 400, api.CodeInvalid, "root"},
		{"dots", "GET", "/v1/states/app/a/../b", "", nil, 400, api.CodeInvalid, `".."`},
		{"escaped dots", "GET", "/v1/states/app/%2e%2e/b", "", nil, 400, api.CodeInvalid, `".."`},
		{"no path", "GET", "/v1/states/app", "", nil, 400, api.CodeInvalid, "ROOT/PATH"},
		{"empty path", "PUT", "/v1/states/app/", "v", nil, 400, api.CodeInvalid, "ROOT/PATH"},
		{"NUL", "GET", "/v1/states/app/a%00b", "", nil, 400, api.CodeInvalid, "control"},
		{"not UTF-8", "GET", "/v1/states/app/a%ff", "", nil, 400, api.CodeInvalid, "UTF-8"},
		{"blank partition", "GET", "/v1/states/app/x?partition=+", "", nil, 400, api.CodeInvalid, "partition"},
		{"unknown revision", "GET", "/v1/states/app/x?rev=9", "", nil, 404, api.CodeNotFound, "the newest is 1"},
		{"greatest revision", "GET", "/v1/states/app/x?rev=9223372036854775807", "", nil, 404, api.CodeNotFound, "the newest is 1"},
		{"revision 0", "GET", "/v1/states/app/x?rev=0", "", nil, 400, api.CodeInvalid, "rev"},
		{"revision of nothing", "GET", "/v1/states/app/none?rev=1", "", nil, 404, api.CodeNotFound, "none"},
		{"revision and time", "GET", "/v1/states/app/x?rev=1&at=2026-01-01T00:00:00Z", "", nil, 400, api.CodeInvalid, "exclude"},
		{"bad time", "GET", "/v1/states/app/x?at=yesterday", "", nil, 400, api.CodeInvalid, "yesterday"},
		{"unknown parameter", "GET", "/v1/states/app/x?revision=1", "", nil, 400, api.CodeInvalid, `"revision"`},
		{"twice", "GET", "/v1/states/app/x?rev=1&rev=2", "", nil, 400, api.CodeInvalid, "2 times"},
		{"broken query", "GET", "/v1/states/app/x?rev=%zz", "", nil, 400, api.CodeInvalid, "query"},
		{"bad format", "GET", "/v1/states/app/x?format=xml", "", nil, 400, api.CodeInvalid, "xml"},
		{"history and watch", "GET", "/v1/states/app/x?history&watch", "", nil, 400, api.CodeInvalid, "exclude"},
		{"bad order", "GET", "/v1/states/app/x?history&order=random", "", nil, 400, api.CodeInvalid, "random"},
		{"bad limit", "GET", "/v1/states/app/x?history&limit=-1", "", nil, 400, api.CodeInvalid, "limit"},
		{"bad If-Match", "PUT", "/v1/states/app/x", "v", []string{`If-Match: "a"`}, 400, api.CodeInvalid, "If-Match"},
		{"If-Match 0", "PUT", "/v1/states/app/x", "v", []string{`If-Match: "0"`}, 400, api.CodeInvalid, "begin at 1"},
		{"both conditions", "PUT", "/v1/states/app/x", "v", []string{`If-Match: "1"`, "If-None-Match: *"}, 400, api.CodeInvalid, "exclude"},
		{"bad If-None-Match", "PUT", "/v1/states/app/x", "v", []string{`If-None-Match: "1"`}, 400, api.CodeInvalid, "want *"},
		{"bad schema version", "PUT", "/v1/states/app/x", "v", []string{"Statesman-Schema-Version: zero"}, 400, api.CodeInvalid, "zero"},
		{"bad metadata", "PUT", "/v1/states/app/x", "v", []string{`Statesman-Metadata: [1]`}, 400, api.CodeInvalid, "JSON object"},
		{"bad escape", "PUT", "/v1/states/app/x", "v", []string{`Statesman-Source: 100%`}, 400, api.CodeInvalid, "percent"},
		{"commit id too long", "PUT", "/v1/states/app/x", "v", []string{"Statesman-Commit-Id: " + strings.Repeat("x", 129)}, 400, api.CodeInvalid, "128"},
		{"payload too large", "PUT", "/v1/states/app/x", strings.Repeat("x", maxPayload+1), nil, 413, api.CodeTooLarge, "1024"},
		{"wrong method on a state", "PATCH", "/v1/states/app/x", "v", nil, 405, api.CodeMethod, "PATCH"},
		{"wrong method", "DELETE", "/v1/status", "", nil, 405, api.CodeMethod, "/v1/status"},
		{"no route", "GET", "/v1/nothing", "", nil, 404, api.CodeNoRoute, "/v1/nothing"},
		{"batch as a form", "POST", "/v1/batch", "{}", []string{"Content-Type: text/plain"}, 415, api.CodeMediaType, "application/json"},
		{"batch without type", "POST", "/v1/batch", "{}", nil, 415, api.CodeMediaType, "application/json"},
		{"empty body", "POST", "/v1/batch", "", []string{jsonHeader}, 400, api.CodeInvalid, "empty"},
		{"no JSON", "POST", "/v1/batch", "{", []string{jsonHeader}, 400, api.CodeInvalid, "JSON"},
		{"unknown field", "POST", "/v1/batch", `{"write":[]}`, []string{jsonHeader}, 400, api.CodeInvalid, `"write"`},
		{"goes on", "POST", "/v1/batch", `{"writes":[]} x`, []string{jsonHeader}, 400, api.CodeInvalid, "goes on"},
		{"no writes", "POST", "/v1/batch", `{"writes":[]}`, []string{jsonHeader}, 400, api.CodeInvalid, "1 to"},
		{"write of nothing", "POST", "/v1/batch", `{"writes":[{"address":"app::x"}]}`, []string{jsonHeader}, 400, api.CodeInvalid, "write 0"},
		{"write of two things", "POST", "/v1/batch", `{"writes":[{"address":"app::x","value":1,"clear":true}]}`, []string{jsonHeader}, 400, api.CodeInvalid, "exactly one"},
		{"two conditions", "POST", "/v1/batch", `{"writes":[{"address":"app::x","value":1,"condition":{"absent":true,"revision":1}}]}`, []string{jsonHeader}, 400, api.CodeInvalid, "not both"},
		{"bad address in a batch", "POST", "/v1/batch", `{"writes":[{"address":"app","value":1}]}`, []string{jsonHeader}, 400, api.CodeInvalid, "root::path"},
		{"huge body", "POST", "/v1/batch", strings.Repeat(" ", 2<<20), []string{jsonHeader}, 413, api.CodeTooLarge, "bytes"},
		{"deep JSON", "POST", "/v1/batch", `{"writes":[{"address":"app::x","value":` + strings.Repeat("[", 100_000) + `}]}`, []string{jsonHeader}, 400, api.CodeInvalid, "JSON"},
		{"bad pattern", "GET", "/v1/partitions?match=a/**b", "", nil, 400, api.CodeInvalid, "**"},
		{"bad capture", "POST", "/v1/capture", `{"addresses":["x"]}`, []string{jsonHeader}, 400, api.CodeInvalid, "root::path"},
		{"unknown outbox", "POST", "/v1/outboxes/none/pause", "{}", []string{jsonHeader}, 404, api.CodeNotFound, "none"},
		{"unknown action", "POST", "/v1/outboxes/up/explode", "{}", []string{jsonHeader}, 404, api.CodeNoRoute, "explode"},
		{"bad cursor", "GET", "/v1/feed?after=x", "", nil, 400, api.CodeInvalid, `"x"`},
		{"negative position", "GET", "/v1/feed?after=-1", "", nil, 400, api.CodeInvalid, "-1"},
		{"ahead of the tail", "GET", "/v1/feed?after=99", "", nil, 400, api.CodeInvalid, "ahead"},
		{"foreign cursor", "GET", "/v1/feed?after=" + statesman.NewLineage().String() + ":1", "", nil, 409, api.CodeLineage, "lineage"},
		{"bad Last-Event-ID", "GET", "/v1/states/app/x?watch", "", []string{"Last-Event-ID: ?"}, 400, api.CodeInvalid, `"?"`},
		{"bad flag", "GET", "/v1/feed?follow=maybe", "", nil, 400, api.CodeInvalid, "maybe"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, body := r.do(t, c.method, c.path, c.body, c.headers...)
			if res.StatusCode != c.status || res.Header.Get("Content-Type") != api.ProblemContentType {
				t.Errorf("answered %d %s, want %d as a problem: %s", res.StatusCode, res.Header.Get("Content-Type"), c.status, body)
			}
			p := problemIn(t, body)
			if p.Code != c.code || p.Status != c.status || !strings.Contains(p.Detail, c.says) {
				t.Errorf("answered %+v, want code %s and %q in the detail", p, c.code, c.says)
			}
		})
	}
	if n := len(r.backend.wrote); n != 1 {
		t.Errorf("bad input made %d writes", n-1)
	}
}

// TestBodyOfUnknownLength sends bodies without a Content-Length: only reading shows their size.
func TestBodyOfUnknownLength(t *testing.T) {
	r := newRig(t, Options{})
	for _, c := range []struct {
		method, path string
		size         int
		status       int
	}{
		{"PUT", "/v1/states/app/x", maxPayload, 201},
		{"PUT", "/v1/states/app/x", maxPayload + 1, 413},
		{"POST", "/v1/batch", 2 << 20, 413},
	} {
		body := io.LimitReader(neverEnding(' '), int64(c.size))
		req, err := http.NewRequestWithContext(t.Context(), c.method, "http://agent"+c.path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := r.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != c.status {
			t.Errorf("%s %s with %d bytes: %d, want %d", c.method, c.path, c.size, res.StatusCode, c.status)
		}
	}
}

// neverEnding is a reader of one byte, again and again.
type neverEnding byte

func (b neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}
