package api

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/statesman-dev/statesman"
)

// Batch writes all or nothing and returns the records in order, without payloads. Errors as for
// Put; a *statesman.ConflictError names the index of the write that lost.
func (c *Client) Batch(ctx context.Context, writes []Write) ([]*Record, error) {
	var out BatchResult
	err := c.json(ctx, call{op: "batch", method: http.MethodPost, path: "/v1/batch"}, BatchRequest{Writes: writes}, &out)
	return out.Records, err
}

// Partitions lists every address ever written that matches the pattern, sorted. "" matches all.
func (c *Client) Partitions(ctx context.Context, pattern string) ([]Partition, error) {
	q := call{op: "list", method: http.MethodGet, path: "/v1/partitions", query: url.Values{}}
	if pattern != "" {
		q.query.Set("match", pattern)
	}
	var out Partitions
	err := c.json(ctx, q, nil, &out)
	return out.Partitions, err
}

// Capture reads the heads of several addresses at one point in time.
func (c *Client) Capture(ctx context.Context, addresses []statesman.Address) (*Captured, error) {
	in := CaptureRequest{Addresses: make([]string, len(addresses))}
	for i, a := range addresses {
		in.Addresses[i] = a.String()
	}
	var out Captured
	if err := c.json(ctx, call{op: "capture", method: http.MethodPost, path: "/v1/capture"}, in, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// Status asks the agent how it is.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	var out Status
	if err := c.json(ctx, call{op: "status", method: http.MethodGet, path: "/v1/status"}, nil, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// Outboxes lists the outboxes in the order of the configuration.
func (c *Client) Outboxes(ctx context.Context) ([]OutboxStatus, error) {
	var out Outboxes
	err := c.json(ctx, call{op: "outbox list", method: http.MethodGet, path: "/v1/outboxes"}, nil, &out)
	return out.Outboxes, err
}

// OutboxAction is what may be asked of an outbox.
type OutboxAction string

// The actions.
const (
	PauseOutbox  OutboxAction = "pause"  // stop delivering; nothing is lost
	ResumeOutbox OutboxAction = "resume" // go on after a pause or an operator's stop
	RetryOutbox  OutboxAction = "retry"  // try now instead of after the backoff
)

// Outbox asks something of the outbox named id and returns its state afterwards. Errors:
// statesman.ErrNotFound.
func (c *Client) Outbox(ctx context.Context, id string, action OutboxAction) (*OutboxStatus, error) {
	q := call{op: "outbox " + string(action), method: http.MethodPost,
		path: "/v1/outboxes/" + url.PathEscape(id) + "/" + url.PathEscape(string(action))}
	var out OutboxStatus
	if err := c.json(ctx, q, struct{}{}, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// Plugins lists what lies in the plugins directory, sorted by name.
func (c *Client) Plugins(ctx context.Context) ([]PluginStatus, error) {
	var out Plugins
	err := c.json(ctx, call{op: "plugin list", method: http.MethodGet, path: "/v1/plugins"}, nil, &out)
	return out.Plugins, err
}

// Live returns nil when an agent answers.
func (c *Client) Live(ctx context.Context) error { return c.probe(ctx, "live", "/livez") }

// Ready returns nil when the agent takes writes.
func (c *Client) Ready(ctx context.Context) error { return c.probe(ctx, "ready", "/readyz") }

func (c *Client) probe(ctx context.Context, op, path string) error {
	res, err := c.do(ctx, call{op: op, method: http.MethodGet, path: path})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}
