package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"

	"github.com/statesman-dev/statesman/agent/config"
)

const program = "statesman-agent"

// defaultDataDir is where state belongs on this system.
func defaultDataDir() (string, error) {
	switch runtime.GOOS {
	case "windows":
		if d := os.Getenv("LOCALAPPDATA"); d != "" {
			return filepath.Join(d, program), nil
		}
	case "darwin":
	default:
		if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
			return filepath.Join(d, program), nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	switch runtime.GOOS {
	case "windows":
		return filepath.Join(home, "AppData", "Local", program), nil
	case "darwin":
		return filepath.Join(home, "Library", "Application Support", program), nil
	}
	return filepath.Join(home, ".local", "state", program), nil
}

// defaultSocket is the socket of a data directory when its configuration names no other.
func defaultSocket(data string) string {
	abs, err := filepath.Abs(data)
	if err != nil {
		abs = data
	}
	return config.DefaultSocket(abs)
}

// discovery is what a running agent leaves in its data directory for those who look for it.
type discovery struct {
	PID     int    `json:"pid"`
	Version string `json:"version"`
	Socket  string `json:"socket"`
	Listen  string `json:"listen,omitempty"`
}

func discoveryFile(data string) string { return filepath.Join(data, "agent.json") }

// announce writes the discovery file.
func announce(data string, d discovery) error {
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	// Whole or not at all for a reader; it need not survive a power cut, as the agent does not.
	name := discoveryFile(data)
	if err := os.WriteFile(name+".tmp", append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".tmp", name)
}

// discoverSocket finds the socket of the agent that owns a data directory. Without a discovery
// file it is the default one; whether anybody listens there is found out by connecting.
func discoverSocket(data string) string {
	b, err := os.ReadFile(discoveryFile(data))
	var d discovery
	if err == nil && json.Unmarshal(b, &d) == nil && d.Socket != "" {
		return d.Socket
	}
	return defaultSocket(data)
}
