package redisstream

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
)

// Reply is what AppendScript answered: the first Accepted records of the batch are upstream,
// Deduplicated of them were before. Problem says what stopped it, nil when nothing did.
type Reply struct {
	Accepted, Deduplicated int
	Position               int64 // where the mark is now
	Problem                *Problem
}

// Problem is a reason not to go on, the same words for the native sink and the plugin.
type Problem struct {
	Class Class
	Text  string
	Hint  string // the way out, "" when waiting is all there is to do
}

// Error implements error.
func (p *Problem) Error() string { return p.Text }

// ErrReply is matched by errors about an answer that is not the scripts'.
var ErrReply = errors.New("unexpected answer of the stream script")

// ParseReply reads the answer of AppendScript to a batch of count records, as a Redis client
// returns it.
func ParseReply(s Stream, v any, count int) (Reply, error) {
	parts, ok := v.([]any)
	if !ok || len(parts) != 5 {
		return Reply{}, fmt.Errorf("%w: %.80q", ErrReply, fmt.Sprint(v))
	}
	code, _ := parts[0].(string)
	accepted, ok1 := parts[1].(int64)
	repeated, ok2 := parts[2].(int64)
	position, err := parsePosition(parts[3])
	detail, ok3 := parts[4].(string)
	if !ok1 || !ok2 || !ok3 || err != nil || accepted < 0 || accepted > int64(count) || repeated < 0 || repeated > accepted {
		return Reply{}, fmt.Errorf("%w: %.80q", ErrReply, fmt.Sprint(v))
	}
	r := Reply{Accepted: int(accepted), Deduplicated: int(repeated), Position: position}
	switch code {
	case "ok":
		if int(accepted) != count {
			return Reply{}, fmt.Errorf("%w: %d of %d records accepted", ErrReply, accepted, count)
		}
	case "moved":
		r.Problem = &Problem{Class: Retry, Text: fmt.Sprintf("stream %s ends at position %d where %s was expected: "+
			"it was emptied or put back, or somebody else writes to it", s.Key, position, detail)}
	case "lineage":
		r.Problem = s.foreignLineage(detail)
	case "ahead":
		r.Problem = s.otherWriter(detail, position)
	case "foreign":
		r.Problem = &Problem{Class: Operator, Hint: "ship to another stream; to give up what is there: " + s.Reset(),
			Text: fmt.Sprintf("stream %s has another message at this position: %q", s.Key, detail)}
	case "error":
		r.Problem = &Problem{Class: Classify(detail), Text: fmt.Sprintf("stream %s: %s", s.Key, detail), Hint: HintFor(detail)}
	default:
		return Reply{}, fmt.Errorf("%w: code %.80q", ErrReply, code)
	}
	return r, nil
}

// Mark is what the stream holds. Position 0 means nothing.
type Mark struct {
	Lineage   [16]byte
	Position  int64
	MessageID string
	Hash      string
}

// ParseMark reads the answer of MarkScript. A stream that holds entries which no mark explains is
// a Problem.
func ParseMark(s Stream, v any) (Mark, error) {
	parts, ok := v.([]any)
	if !ok || len(parts) != 5 {
		return Mark{}, fmt.Errorf("%w: %.80q", ErrReply, fmt.Sprint(v))
	}
	top, err1 := parsePosition(parts[0])
	lineage, ok1 := parts[1].(string)
	position, err2 := parsePosition(parts[2])
	id, ok2 := parts[3].(string)
	hash, ok3 := parts[4].(string)
	if err1 != nil || err2 != nil || !ok1 || !ok2 || !ok3 {
		return Mark{}, fmt.Errorf("%w: %.80q", ErrReply, fmt.Sprint(v))
	}
	if top > position {
		return Mark{}, s.otherWriter(strconv.FormatInt(top, 10), position)
	}
	m := Mark{Position: position, MessageID: id, Hash: hash}
	if position == 0 && lineage == "" {
		return m, nil
	}
	bytes, err := hex.DecodeString(lineage)
	if copy(m.Lineage[:], bytes); err != nil || len(bytes) != len(m.Lineage) {
		return Mark{}, &Problem{Class: Operator, Text: fmt.Sprintf("key %s holds no mark: lineage %.80q", s.MarkKey, lineage),
			Hint: "ship to another stream; to give up what is there: " + s.Reset()}
	}
	return m, nil
}

func (s Stream) foreignLineage(theirs string) *Problem {
	return &Problem{Class: Operator, Hint: "ship to another stream; to give up what is there: " + s.Reset(),
		Text: fmt.Sprintf("stream %s holds the changes of another store: lineage %s", s.Key, theirs)}
}

func (s Stream) otherWriter(top string, position int64) *Problem {
	text := fmt.Sprintf("stream %s ends at id %s, its mark at %d: somebody else writes to it", s.Key, top, position)
	if position == 0 {
		text = fmt.Sprintf("stream %s has entries, up to id %s, but no mark: they are not of this agent", s.Key, top)
	}
	return &Problem{Class: Operator, Text: text, Hint: "ship to another stream; to give up what is there: " + s.Reset()}
}

func parsePosition(v any) (int64, error) {
	s, ok := v.(string)
	if !ok {
		return 0, ErrReply
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil && n < 0 {
		err = ErrReply
	}
	return n, err
}
