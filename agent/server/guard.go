package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/statesman-dev/statesman/agent/api"
)

// socketHosts are the names that clients of the socket may use: the client's own, and what people
// type after curl --unix-socket.
var socketHosts = []string{api.SocketHost, "agent", "localhost"}

// guard decides which requests reach the API on one listener.
type guard struct {
	hosts []string // lower-case; with a port where the port counts
	token []byte   // SHA-256 of the bearer token; nil = none is needed
	cross *http.CrossOriginProtection
}

// Socket returns the handler for the Unix socket, whose file mode is its access control.
func (s *Server) Socket() http.Handler {
	return s.guarded(&guard{hosts: socketHosts})
}

// TCP returns the handler for a loopback listener at address, which needs the token.
func (s *Server) TCP(address net.Addr, token string) http.Handler {
	_, port, _ := net.SplitHostPort(address.String()) // of a listener: always host:port
	sum := sha256.Sum256([]byte(token))
	g := &guard{token: sum[:]}
	for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
		g.hosts = append(g.hosts, net.JoinHostPort(host, port))
	}
	g.hosts = append(g.hosts, strings.ToLower(address.String()))
	return s.guarded(g)
}

func (s *Server) guarded(g *guard) http.Handler {
	g.cross = http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set(api.HeaderVersion, s.opts.Version)
		h.Set("Cache-Control", "no-store")
		// Payloads are whatever the application stored: a browser must not run them.
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
		if p := g.check(r); p != nil {
			s.requests.add("refused", p.Status)
			if p.Status == http.StatusUnauthorized {
				h.Set("WWW-Authenticate", "Bearer")
			}
			s.fail(w, r, p)
			return
		}
		s.serve(w, r)
	})
}

// check returns why a request is refused, nil when it may pass.
func (g *guard) check(r *http.Request) *api.Problem {
	if !g.knows(r.Host) {
		p := api.NewProblem(api.CodeForbidden, "host %q is not a name of this agent", r.Host)
		p.Status = http.StatusMisdirectedRequest
		p.Hint = "use one of " + strings.Join(g.hosts, ", ")
		return p
	}
	if !sameOrigin(r) || g.cross.Check(r) != nil {
		return api.NewProblem(api.CodeForbidden, "requests from pages of other sites are refused")
	}
	probe := r.URL.Path == "/livez" || r.URL.Path == "/readyz"
	if g.token != nil && !probe && !g.authorized(r) {
		p := api.NewProblem(api.CodeUnauthorized, "this listener needs the token as Authorization: Bearer TOKEN")
		p.Hint = "read the token from the file that api.token_file names"
		return p
	}
	return nil
}

// knows compares the whole Host, never a suffix of it. Without ports in the list, as on the
// socket, any port will do.
func (g *guard) knows(host string) bool {
	host = strings.ToLower(host)
	if slices.Contains(g.hosts, host) {
		return true
	}
	name, _, err := net.SplitHostPort(host)
	return err == nil && slices.Contains(g.hosts, name)
}

// sameOrigin refuses what a browser says comes from elsewhere. CrossOriginProtection lets reads
// pass, but a read of somebody's state is what a page must not get.
func sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "http" && strings.EqualFold(u.Host, r.Host)
}

// authorized compares digests in constant time, so that neither content nor length of the token
// can be measured.
func (g *guard) authorized(r *http.Request) bool {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return subtle.ConstantTimeCompare(sum[:], g.token) == 1
}
