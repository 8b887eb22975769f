package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// acked is one write that the agent acknowledged.
type acked struct {
	address  string
	revision int64
	commitID string
}

// stored is one record as the feed tells it.
type stored struct {
	address  string
	revision int64
	position int64
	commitID string
}

// shipped is one message as a receiver found it.
type shipped struct {
	messageID string
	address   string
	revision  int64
}

// tally compares what was acknowledged with what is stored and what arrived.
type tally struct {
	Acknowledged int `json:"acknowledged"`
	InStore      int `json:"inStore"`
	Shipped      int `json:"shipped"`
	Distinct     int `json:"distinctMessageIds"`
	Lost         int `json:"lost"`
	OutOfOrder   int `json:"outOfOrder"`
}

// count judges one act. A write is lost when the store does not hold it under the revision that
// was acknowledged, or when no message carries it. A message is out of order when it is the first
// of its id and does not carry the next revision of its address. A record stored twice, or at a
// revision that is not the next one, is out of order too.
func count(acks []acked, records []stored, messages []shipped) tally {
	t := tally{Acknowledged: len(acks), InStore: len(records), Shipped: len(messages)}
	held := make(map[string]string, len(records))
	next := make(map[string]int64)
	last := int64(0)
	for _, r := range records {
		held[key(r.address, r.revision)] = r.commitID
		if next[r.address]++; r.revision != next[r.address] || r.position <= last {
			t.OutOfOrder++
		}
		last = r.position
	}
	seen := make(map[string]bool, len(messages))
	arrived := make(map[string]bool, len(messages))
	clear(next)
	for _, m := range messages {
		if seen[m.messageID] {
			continue
		}
		seen[m.messageID] = true
		arrived[key(m.address, m.revision)] = true
		if next[m.address]++; m.revision != next[m.address] {
			t.OutOfOrder++
		}
	}
	t.Distinct = len(seen)
	for _, a := range acks {
		k := key(a.address, a.revision)
		if id, ok := held[k]; !ok || id != a.commitID || !arrived[k] {
			t.Lost++
		}
	}
	return t
}

func key(address string, revision int64) string {
	return address + "#" + strconv.FormatInt(revision, 10)
}

// messagesIn reads the messages of a JSON lines file.
func messagesIn(name string) ([]shipped, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []shipped
	for in := bufio.NewReader(f); ; {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var m struct {
			MessageID string `json:"messageId"`
			Address   string `json:"address"`
			Revision  int64  `json:"revision"`
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("%s line %d: %w", name, len(all)+1, err)
		}
		all = append(all, shipped{m.MessageID, m.Address, m.Revision})
	}
}
