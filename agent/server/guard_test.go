package server

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/statesman-dev/statesman/agent/api"
)

func problemIn(t *testing.T, body string) api.Problem {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatalf("no problem: %v in %q", err, body)
	}
	return p
}

// TestGuardSocket tries what a browser would send if it could reach the socket, through a proxy
// that somebody runs in front of it.
func TestGuardSocket(t *testing.T) {
	r := newRig(t, Options{})
	r.put(t, address(t, "app::x"), "1")
	for _, c := range []struct {
		name, method, path string
		headers            []string
		status             int
	}{
		{"own host", "GET", "/v1/states/app/x", []string{"Host: statesman-agent"}, 200},
		{"localhost with a port", "GET", "/v1/states/app/x", []string{"Host: localhost:7377"}, 200},
		{"upper case", "GET", "/v1/states/app/x", []string{"Host: AGENT"}, 200},
		{"foreign host", "GET", "/v1/states/app/x", []string{"Host: evil.test"}, 421},
		{"suffix of a host", "GET", "/v1/states/app/x", []string{"Host: evil.localhost"}, 421},
		{"prefix of a host", "GET", "/v1/states/app/x", []string{"Host: localhost.evil.test"}, 421},
		{"probes, too", "GET", "/livez", []string{"Host: evil.test"}, 421},
		{"cross-site write", "PUT", "/v1/states/app/x", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"same-site write", "DELETE", "/v1/states/app/x", []string{"Sec-Fetch-Site: same-site"}, 403},
		{"cross-site read", "GET", "/v1/states/app/x", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"typed into a browser", "GET", "/v1/states/app/x", []string{"Sec-Fetch-Site: none"}, 200},
		{"foreign origin", "GET", "/v1/states/app/x", []string{"Origin: http://evil.test"}, 403},
		{"null origin", "PUT", "/v1/states/app/x", []string{"Origin: null"}, 403},
		{"https origin of our host", "PUT", "/v1/states/app/x", []string{"Origin: https://agent"}, 403},
		{"own origin", "PUT", "/v1/states/app/x", []string{"Origin: http://agent"}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(r.backend.wrote)
			res, body := r.do(t, c.method, c.path, "2", c.headers...)
			if res.StatusCode != c.status {
				t.Errorf("answered %d, want %d: %s", res.StatusCode, c.status, body)
			}
			if c.status >= 400 {
				if p := problemIn(t, body); p.Code != api.CodeForbidden {
					t.Errorf("code %s, want forbidden", p.Code)
				}
				if len(r.backend.wrote) != before {
					t.Error("it was written all the same")
				}
			}
			if res.Header.Get("Access-Control-Allow-Origin") != "" || res.Header.Get("X-Content-Type-Options") != "nosniff" ||
				!strings.Contains(res.Header.Get("Content-Security-Policy"), "sandbox") || res.Header.Get(api.HeaderVersion) != "1.2.3" {
				t.Errorf("headers %v", res.Header)
			}
		})
	}
}

func TestGuardTCP(t *testing.T) {
	r := newRig(t, Options{})
	r.put(t, address(t, "app::x"), "1")
	const token = "0123456789abcdef"
	h := r.server.TCP(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7377}, token)
	for _, c := range []struct {
		name, path, host, auth string
		status                 int
	}{
		{"token", "/v1/states/app/x", "127.0.0.1:7377", "Bearer " + token, 200},
		{"lower-case scheme", "/v1/states/app/x", "localhost:7377", "bearer " + token, 200},
		{"IPv6", "/v1/states/app/x", "[::1]:7377", "Bearer " + token, 200},
		{"no token", "/v1/states/app/x", "127.0.0.1:7377", "", 401},
		{"wrong token", "/v1/states/app/x", "127.0.0.1:7377", "Bearer 0123456789abcdee", 401},
		{"beginning of the token", "/v1/states/app/x", "127.0.0.1:7377", "Bearer " + token[:15], 401},
		{"empty token", "/v1/states/app/x", "127.0.0.1:7377", "Bearer ", 401},
		{"basic", "/v1/states/app/x", "127.0.0.1:7377", "Basic " + token, 401},
		{"metrics need it", "/metrics", "127.0.0.1:7377", "", 401},
		{"probes do not", "/livez", "127.0.0.1:7377", "", 200},
		{"rebound name with a token", "/v1/states/app/x", "evil.test:7377", "Bearer " + token, 421},
		{"no port", "/v1/states/app/x", "127.0.0.1", "Bearer " + token, 421},
		{"another port", "/v1/states/app/x", "127.0.0.1:80", "Bearer " + token, 421},
		{"the socket's name", "/v1/states/app/x", "statesman-agent", "Bearer " + token, 421},
		{"any address", "/v1/states/app/x", "0.0.0.0:7377", "Bearer " + token, 421},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil)
			req.Host = c.host
			if c.auth != "" {
				req.Header.Set("Authorization", c.auth)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			if w.Code != c.status {
				t.Errorf("answered %d, want %d: %s", w.Code, c.status, w.Body)
			}
			if (w.Code == 401) != (w.Header().Get("WWW-Authenticate") != "") {
				t.Errorf("status %d with WWW-Authenticate %q", w.Code, w.Header().Get("WWW-Authenticate"))
			}
			if strings.Contains(w.Body.String(), token) {
				t.Error("the answer contains the token")
			}
		})
	}
}
