package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTally proves that the demo's verdict can be anything but zero.
func TestTally(t *testing.T) {
	acks := []acked{{"a", 1, "x"}, {"a", 2, "y"}, {"b", 1, "z"}}
	records := []stored{{"a", 1, 1, "x"}, {"b", 1, 2, "z"}, {"a", 2, 3, "y"}}
	messages := []shipped{{"s/a#1", "a", 1}, {"s/b#1", "b", 1}, {"s/a#2", "a", 2}}
	tests := []struct {
		name     string
		acks     []acked
		records  []stored
		messages []shipped
		want     tally
	}{
		{"all well", acks, records, messages, tally{3, 3, 3, 3, 0, 0}},
		{"repeated delivery", acks, records, append(messages[:2:2], messages...), tally{3, 3, 5, 3, 0, 0}},
		{"not stored", acks, records[:2], messages, tally{3, 2, 3, 3, 1, 0}},
		{"not shipped", acks, records, messages[:2], tally{3, 3, 2, 2, 1, 0}},
		{"another write under the revision", []acked{{"a", 1, "other"}}, records, messages, tally{1, 3, 3, 3, 1, 0}},
		{"shipped out of order", acks, records, []shipped{messages[2], messages[0], messages[1]}, tally{3, 3, 3, 3, 0, 2}},
		{"stored out of order", acks, []stored{records[2], records[0], records[1]}, messages, tally{3, 3, 3, 3, 0, 2}},
		{"nothing arrived", acks, nil, nil, tally{3, 0, 0, 0, 3, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := count(tt.acks, tt.records, tt.messages); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestMessagesIn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.jsonl")
	whole := `{"messageId":"s/a#1","address":"a","revision":1}` + "\n"
	for content, want := range map[string]int{whole: 1, whole + `{"torn`: 1, "": 0} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := messagesIn(name)
		if err != nil || len(got) != want {
			t.Errorf("%q: got %d messages, error %v; want %d", content, len(got), err, want)
		}
	}
	if err := os.WriteFile(name, []byte("not json\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := messagesIn(name); err == nil {
		t.Error("a line that is not JSON was accepted")
	}
}
