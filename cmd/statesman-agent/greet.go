package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/statesman-dev/statesman/agent/config"
	"github.com/statesman-dev/statesman/fsstore"
)

// stopGrace is how long an ordered stop may take.
const stopGrace = 10 * time.Second

// greet says what runs, where it lies, and what to do next.
func (g *globals) greet(st fsstore.Stats, path string, cfg *config.Config) error {
	if path == "" {
		path = "none; the defaults are used"
	}
	outboxes := "none; changes stay here until there is one"
	if len(cfg.Outboxes) > 0 {
		names := make([]string, len(cfg.Outboxes))
		for i, o := range cfg.Outboxes {
			names[i] = fmt.Sprintf("%s (%s)", o.ID, o.Sink)
		}
		outboxes = strings.Join(names, ", ")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "statesman-agent %s, ready after %v\n", version, st.OpenTime.Round(time.Millisecond/10))
	fmt.Fprintf(&b, "  config    %s\n", path)
	fmt.Fprintf(&b, "  store     %s, named %s, at position %d\n", st.Dir, st.Name, st.Position)
	fmt.Fprintf(&b, "  socket    %s\n", cfg.API.Socket)
	if cfg.API.Listen != "" {
		fmt.Fprintf(&b, "  listen    %s, token in %s\n", cfg.API.Listen, cfg.API.TokenFile)
	}
	fmt.Fprintf(&b, "  plugins   %s\n", cfg.Plugins.Dir)
	fmt.Fprintf(&b, "  outboxes  %s\n", outboxes)
	if st.TornTails > 0 {
		fmt.Fprintf(&b, "  recovery  cut %d bytes of writes that nobody was told of; they lie in quarantine\n", st.TornBytes)
	}
	for _, d := range st.Damage {
		fmt.Fprintf(&b, "  DAMAGED   positions %d to %d cannot be read: %v\n", d.First, d.Last, d.Cause)
	}
	fmt.Fprintf(&b, "Next: echo '{\"theme\":\"dark\"}' | statesman-agent put app/settings --data %s\n", g.data)
	_, err := g.std.out.Write([]byte(b.String()))
	return err
}
