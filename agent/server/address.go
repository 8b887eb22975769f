package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/statesman-dev/statesman"
)

// addressOf reads root and path from the escaped path, and the partition from the query. A %2F
// stands for the same as a slash, as a path has no other use for one.
func addressOf(r *http.Request, q url.Values) (statesman.Address, error) {
	escaped := strings.TrimPrefix(r.URL.EscapedPath(), statesPrefix)
	root, path, ok := strings.Cut(escaped, "/")
	if !ok || path == "" {
		return statesman.Address{}, statesman.Invalid("address %q: want /v1/states/ROOT/PATH", escaped)
	}
	root, err := url.PathUnescape(root)
	if err == nil {
		path, err = url.PathUnescape(path)
	}
	if err != nil {
		return statesman.Address{}, statesman.Invalid("address: %v", err)
	}
	partition := q.Get("partition")
	if q.Has("partition") && strings.TrimSpace(partition) == "" {
		return statesman.Address{}, statesman.Invalid("partition %q: blank; leave it out for %s", partition, statesman.DefaultPartition)
	}
	return statesman.NewAddress(root, path, partition)
}

// query reads the query strictly: a broken escape, a parameter that is not known here and one that
// comes twice are errors, because ignoring them would answer another question than was asked.
func query(r *http.Request, known ...string) (url.Values, error) {
	v, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, statesman.Invalid("query: %v", err)
	}
	for name, values := range v {
		found := false
		for _, k := range known {
			found = found || k == name
		}
		if !found {
			return nil, statesman.Invalid("query parameter %q is not known here; want %s", name, strings.Join(known, ", "))
		}
		if len(values) > 1 && name != "match" {
			return nil, statesman.Invalid("query parameter %q comes %d times", name, len(values))
		}
	}
	return v, nil
}

// number reads a whole number of at least least; missing is 0.
func number(q url.Values, name string, least int64) (int64, error) {
	if !q.Has(name) {
		return 0, nil
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil || n < least {
		return 0, statesman.Invalid("query parameter %s=%q: want a whole number of at least %d", name, q.Get(name), least)
	}
	return n, nil
}

// instant reads an RFC 3339 time; missing is zero.
func instant(q url.Values, name string) (time.Time, error) {
	if !q.Has(name) {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, q.Get(name))
	if err != nil {
		return time.Time{}, statesman.Invalid("query parameter %s=%q: want a time such as 2026-01-31T18:00:00Z", name, q.Get(name))
	}
	return t, nil
}

// flag reads true or false; missing is standard, and the bare name is true.
func flag(q url.Values, name string, standard bool) (bool, error) {
	if !q.Has(name) {
		return standard, nil
	}
	switch q.Get(name) {
	case "", "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, statesman.Invalid("query parameter %s=%q: want true or false", name, q.Get(name))
}

// patterns reads the match parameters.
func patterns(q url.Values) ([]statesman.Pattern, error) {
	var list []statesman.Pattern
	for _, m := range q["match"] {
		p, err := statesman.ParsePattern(m)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func matches(list []statesman.Pattern, a statesman.Address) bool {
	for _, p := range list {
		if p.Match(a) {
			return true
		}
	}
	return len(list) == 0
}

// decodeStrict refuses unknown names and anything behind the value. Errors match
// statesman.ErrInvalid.
func decodeStrict(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	switch {
	case errors.Is(err, io.EOF):
		return statesman.Invalid("the body is empty; want a JSON object")
	case errors.Is(err, statesman.ErrInvalid):
		return err
	case err != nil:
		return statesman.Invalid("the body is not the JSON that is wanted: %v", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return statesman.Invalid("the body goes on behind its JSON value")
	}
	return nil
}
