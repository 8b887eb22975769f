package agent

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/statesman-dev/statesman/agent/api"
)

// judgement gathers troubles and the verdict that they add up to.
type judgement struct {
	status  *api.Status
	verdict api.Verdict
	worst   string // the sentence of the first trouble of the worst kind
}

// trouble records a problem and what it does to the verdict; Healthy only lists it.
func (j *judgement) trouble(v api.Verdict, code, subject, text, try string) {
	j.status.Problems = append(j.status.Problems, api.Trouble{Code: code, Subject: subject, Text: text, Try: try})
	rank := map[api.Verdict]int{api.Healthy: 0, api.Degraded: 1, api.Failing: 2}
	if rank[v] > rank[j.verdict] {
		j.verdict, j.worst = v, text
		if v == api.Degraded {
			j.worst = subject + ": " + text
		}
	}
}

// outboxTroubles are the states in which an outbox does not do its work.
var outboxTroubles = map[api.OutboxState]string{
	api.OutboxRetrying: "outbox_offline",
	api.OutboxPaused:   "outbox_paused",
	api.OutboxBlocked:  "outbox_blocked",
	api.OutboxStopped:  "outbox_stopped",
}

func (j *judgement) outbox(o api.OutboxStatus) {
	if o.Missing > 0 {
		j.trouble(api.Healthy, "outbox_missing", "outbox "+o.ID,
			count(o.Missing, "position")+" were lost to damage, declared so by a repair, and passed over", "statesman-agent store verify")
	}
	code, bad := outboxTroubles[o.State]
	if !bad && o.Unsaved != "" {
		code, bad = "cursor_unsaved", true
	}
	if !bad {
		return
	}
	try := o.Try
	if try == "" {
		try = "statesman-agent outbox retry " + o.ID
	}
	j.trouble(api.Degraded, code, "outbox "+o.ID, o.Cause, try)
}

// plugin judges a plugin. One that no outbox uses is worth a line, but nothing is degraded by it.
func (j *judgement) plugin(p api.PluginStatus) {
	verdict := api.Healthy
	if len(p.Outboxes) > 0 {
		verdict = api.Degraded
	}
	code, text := "plugin_"+string(p.State), p.Cause
	switch p.State {
	case api.PluginLoading:
		return
	case api.PluginReady, api.PluginUnpinned:
		if p.Cause == "" {
			return
		}
		code, text = "plugin_update_refused", "the version before goes on: "+p.Cause
	}
	if text == "" {
		text = "it is " + string(p.State)
	}
	try := p.Try
	if try == "" {
		try = "statesman-agent plugin inspect " + p.Name
	}
	j.trouble(verdict, code, "plugin "+p.Name, text, try)
}

// summary is the one sentence behind the verdict.
func (j *judgement) summary() string {
	var waiting, shipping int64
	for _, o := range j.status.Outboxes {
		if o.Behind > 0 {
			waiting = max(waiting, o.Behind)
			shipping++
		}
	}
	switch {
	case j.verdict == api.Failing:
		return j.worst
	case j.verdict == api.Degraded && waiting > 0:
		return fmt.Sprintf("your data is safe, %s wait; %s", count(waiting, "record"), j.worst)
	case j.verdict == api.Degraded:
		return "your data is safe; " + j.worst
	case len(j.status.Outboxes) == 0:
		return "keeping " + j.kept() + "; no outbox is configured"
	case waiting > 0:
		return fmt.Sprintf("shipping: %s to go on %s", count(waiting, "record"), count(shipping, "outbox"))
	}
	return "keeping " + j.kept() + "; everything is shipped"
}

func (j *judgement) kept() string {
	return count(j.status.Store.Records, "record") + " of " + count(j.status.Store.Addresses, "address")
}

// count writes a number with its noun, which may end in -s or -x.
func count(n int64, noun string) string {
	if n != 1 {
		if strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "x") {
			noun += "es"
		} else {
			noun += "s"
		}
	}
	return grouped(n) + " " + noun
}

// grouped writes n with commas between groups of three digits; n is not negative.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
