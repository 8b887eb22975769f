package redisstore

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/internal/redisstream"
)

// Defaults of StreamOptions.
const (
	DefaultDialTimeout = 5 * time.Second
	DefaultTimeout     = 10 * time.Second
)

// StreamOptions configure a StreamSink. The zero value of each field but URL and Stream is its
// default.
type StreamOptions struct {
	URL         string        // redis://[[user]:password@]host[:port][/database], or rediss:// for TLS
	Stream      string        // the key of the stream
	MaxLength   int64         // entries to keep, about: trimmed by whole nodes; 0 = all
	DialTimeout time.Duration // for a connection; default 5 s
	Timeout     time.Duration // for the answer to one batch; default 10 s
	Logger      *slog.Logger  // nil = discard
}

// ParseStreamOptions reads the "with" object of an outbox: url, stream, max_length (a number),
// dial_timeout and timeout (durations such as "5s"). Every fault is named in one error that
// matches statesman.ErrInvalid; unknown keys are faults.
func ParseStreamOptions(with map[string]any) (StreamOptions, error) {
	var o StreamOptions
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	var unknown []string
	for _, key := range slices.Sorted(maps.Keys(with)) {
		value := with[key]
		switch key {
		case "url", "stream":
			text, ok := value.(string)
			if !ok {
				fault("%s: want text, not %s", key, kindOf(value))
			} else if key == "url" {
				o.URL = text
			} else {
				o.Stream = text
			}
		case "max_length":
			n, ok := wholeNumber(value)
			if !ok {
				fault("max_length: want a whole number, not %s", kindOf(value))
			}
			o.MaxLength = n
		case "dial_timeout", "timeout":
			d, err := duration(value)
			if err != nil {
				fault("%s: %v", key, err)
			} else if key == "timeout" {
				o.Timeout = d
			} else {
				o.DialTimeout = d
			}
		default:
			unknown = append(unknown, key)
		}
	}
	if len(unknown) > 0 {
		fault("unknown: %s; known are url, stream, max_length, dial_timeout, timeout", strings.Join(unknown, ", "))
	}
	_, _, more := o.resolve()
	if faults = append(faults, more...); len(faults) > 0 {
		return StreamOptions{}, statesman.Invalid("redis-stream: %s", strings.Join(faults, "; "))
	}
	return o, nil
}

// resolve checks o and derives what it stands for.
func (o *StreamOptions) resolve() (*redis.Options, redisstream.Stream, []string) {
	var faults []string
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	check(o.DialTimeout >= 0, "dial_timeout %v: want 0 or more", o.DialTimeout)
	check(o.Timeout >= 0, "timeout %v: want 0 or more", o.Timeout)
	stream, err := redisstream.NewStream(o.Stream, o.MaxLength)
	check(err == nil, "%v", err)
	if o.URL == "" {
		return nil, stream, append(faults, "url: missing, want redis://host:port/0")
	}
	client, err := redis.ParseURL(o.URL)
	if err != nil {
		return nil, stream, append(faults, "url: "+urlFault(err))
	}
	return client, stream, faults
}

// urlFault explains a refused url without repeating it: it may hold a password.
func urlFault(err error) string {
	if text := err.Error(); strings.HasPrefix(text, "redis: ") {
		return strings.TrimPrefix(text, "redis: ") + "; want redis://host:port/0"
	}
	return "not a url; want redis://host:port/0"
}

func wholeNumber(v any) (int64, bool) {
	switch n := v.(type) {
	case int:
		return int64(n), true
	case int64:
		return n, true
	case uint64:
		return int64(n), n <= 1<<62
	case float64: // what JSON makes of every number
		return int64(n), n == float64(int64(n)) && n >= -1<<53 && n <= 1<<53
	}
	return 0, false
}

func duration(v any) (time.Duration, error) {
	text, ok := v.(string)
	if !ok {
		return 0, fmt.Errorf("want a duration such as \"5s\", not %s", kindOf(v))
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("want a duration such as \"5s\", not %q", text)
	}
	if d <= 0 {
		return 0, errors.New("want more than 0")
	}
	return d, nil
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case string:
		return "text"
	case bool:
		return "true or false"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return fmt.Sprint(v)
}
