package redisstream

import (
	"errors"
	"fmt"
	"strings"
)

// Stream names where changes go.
type Stream struct {
	Key       string // of the stream
	MarkKey   string // of its mark
	MaxLength int64  // entries to keep, about; 0 = all
}

// NewStream checks a stream's name and derives its mark's. A name with a brace is taken only when
// it holds a whole hash tag: otherwise stream and mark would live in different cluster slots.
func NewStream(key string, maxLength int64) (Stream, error) {
	s := Stream{Key: key, MarkKey: "{" + key + "}:mark", MaxLength: maxLength}
	if key == "" {
		return Stream{}, errors.New("stream: no name")
	}
	if maxLength < 0 {
		return Stream{}, fmt.Errorf("stream %q: max length %d: want 0 or more", key, maxLength)
	}
	if strings.ContainsAny(key, "{}") {
		_, rest, open := strings.Cut(key, "{")
		tag, _, closed := strings.Cut(rest, "}")
		if !open || !closed || tag == "" {
			return Stream{}, fmt.Errorf("stream %q: braces must hold a cluster hash tag, as in {tag}name", key)
		}
		s.MarkKey = key + ":mark"
	}
	return s, nil
}

// Keys are the KEYS of both scripts.
func (s Stream) Keys() []string { return []string{s.Key, s.MarkKey} }

// Reset is the command by which an operator gives up what the stream holds.
func (s Stream) Reset() string {
	return "redis-cli DEL '" + s.Key + "' '" + s.MarkKey + "'"
}
