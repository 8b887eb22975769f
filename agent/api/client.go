package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/statesman-dev/statesman"
)

// SocketHost is the Host that requests over the socket carry. The agent knows it; a web page
// cannot send it to a socket.
const SocketHost = "statesman-agent"

// ClientOptions tune a Client. nil means the defaults.
type ClientOptions struct {
	// DialTimeout bounds connecting. 0 = 5 s.
	DialTimeout time.Duration
	// UserAgent goes with every request. "" = statesman-go.
	UserAgent string
}

// Client talks to one agent. It is safe for concurrent use and connects on first use.
type Client struct {
	http  *http.Client
	base  string // http://host
	where string // for errors
	token string
	agent string
}

// Unix returns a client of the agent that listens on the Unix socket at path.
func Unix(path string, opts *ClientOptions) *Client {
	return newClient(SocketHost, "unix:"+path, "", opts, func(d *net.Dialer) dial {
		return func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", path) }
	})
}

// TCP returns a client of the agent that listens on a loopback address, host:port, with the token
// that its token file holds.
func TCP(address, token string, opts *ClientOptions) *Client {
	return newClient(address, "tcp:"+address, strings.TrimSpace(token), opts, func(d *net.Dialer) dial {
		return func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }
	})
}

type dial func(ctx context.Context, network, address string) (net.Conn, error)

func newClient(host, where, token string, opts *ClientOptions, dialer func(*net.Dialer) dial) *Client {
	var o ClientOptions
	if opts != nil {
		o = *opts
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = 5 * time.Second
	}
	// No proxy: the environment must not be able to divert local state to another machine.
	tr := &http.Transport{DialContext: dialer(&net.Dialer{Timeout: o.DialTimeout}), DisableCompression: true,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second}
	return &Client{http: &http.Client{Transport: tr, CheckRedirect: noRedirects}, base: "http://" + host, where: where,
		token: token, agent: orElse(o.UserAgent, "statesman-go")}
}

func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close drops idle connections. Requests in flight go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Where names the agent's address: unix:PATH or tcp:HOST:PORT.
func (c *Client) Where() string { return c.where }

// call is one request.
type call struct {
	op     string
	method string
	path   string // escaped
	query  url.Values
	header http.Header
	body   io.Reader
	cond   statesman.Condition // for a conflict's error
}

// do sends a request and returns an answer of status 2xx, whose body the caller closes. Everything
// else is an error.
func (c *Client) do(ctx context.Context, q call) (*http.Response, error) {
	target := c.base + q.path
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, q.method, target, q.body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.op, err)
	}
	for k, v := range q.header {
		req.Header[k] = v
	}
	req.Header.Set("User-Agent", c.agent)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.transportError(ctx, q, err)
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, c.problem(q, res)
}

// transportError tells a missing agent from one that went away in mid-request. A write may have
// happened in the second case, so its error matches ErrUnknown.
func (c *Client) transportError(ctx context.Context, q call, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", q.op, ctx.Err())
		}
		return &UnreachableError{Where: c.where, Err: op.Err, Hint: "statesman-agent run"}
	}
	if q.method == http.MethodGet || q.method == http.MethodHead {
		return fmt.Errorf("%s: %w", q.op, err)
	}
	return &statesman.Error{Op: q.op, Store: c.where, Err: fmt.Errorf("%w: the answer was lost: %w", statesman.ErrUnknown, err),
		Hint: "read the address again, or repeat the write with the same commit id"}
}

// problem reads the error of an answer.
func (c *Client) problem(q call, res *http.Response) error {
	const most = 1 << 20
	b, _ := io.ReadAll(io.LimitReader(res.Body, most)) // what was read is enough to report
	var p Problem
	if json.Unmarshal(b, &p) != nil || p.Code == "" {
		p = Problem{Status: res.StatusCode, Title: http.StatusText(res.StatusCode), Code: CodeInternal,
			Detail: fmt.Sprintf("%s: %s answered %s, which is not an answer of statesman-agent", q.op, c.where, res.Status)}
	}
	return errorOf(q.op, p, q.cond)
}

// json sends in, when it is not nil, and decodes the answer into out.
func (c *Client) json(ctx context.Context, q call, in, out any) error {
	if q.header == nil {
		q.header = http.Header{}
	}
	q.header.Set("Accept", JSONContentType)
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("%s: %w", q.op, err)
		}
		q.body = bytes.NewReader(b)
		q.header.Set("Content-Type", JSONContentType)
	}
	res, err := c.do(ctx, q)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		return c.transportError(ctx, q, fmt.Errorf("the answer is not whole: %w", err))
	}
	return nil
}
