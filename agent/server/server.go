package server

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/statesman-dev/statesman"
	"github.com/statesman-dev/statesman/agent/api"
)

// Backend is what the API asks the agent. Implementations are safe for concurrent use.
type Backend interface {
	Status(ctx context.Context) *api.Status
	Outboxes(ctx context.Context) []api.OutboxStatus
	// OutboxAction does what is asked and returns the state afterwards. Errors match
	// statesman.ErrNotFound for an unknown id and errors.ErrUnsupported.
	OutboxAction(ctx context.Context, id string, action api.OutboxAction) (*api.OutboxStatus, error)
	Plugins(ctx context.Context) []api.PluginStatus
	// Verify reads the whole store; see agent.Verifier.
	Verify(ctx context.Context, progress func(api.Progress), found func(api.Finding)) (*api.StoreReport, error)
	// Compact rewrites the store's log; see agent.Compactor.
	Compact(ctx context.Context, dryRun bool, tick func()) (*api.CompactResult, error)
	// Ready returns nil when the agent takes writes.
	Ready(ctx context.Context) error
	// Wrote is told after each write, in the writer's goroutine. It must not wait.
	Wrote(a statesman.Address)
	// WriteFailed is told why a write failed, in the same way.
	WriteFailed(err error)
}

// Options configure New. The zero value of each field is its default.
type Options struct {
	Version    string          // of the agent, in the Statesman-Version header
	MaxPayload int             // bytes of one payload; 0 = statesman.DefaultMaxPayload
	Done       <-chan struct{} // closing it ends streams; nil = they end with their clients
	Logger     *slog.Logger    // nil = discard

	KeepAlive    time.Duration // between signs of life on an idle stream; 0 = 15 s
	Poll         time.Duration // longest wait for changes when no hint comes; 0 = 1 s
	ReadTimeout  time.Duration // for a request's body; 0 = 1 min
	WriteTimeout time.Duration // for one piece of an answer; 0 = 30 s
}

// Server answers the API. It is safe for concurrent use and starts no goroutines.
type Server struct {
	store    statesman.Store
	feed     statesman.Feed
	notifier statesman.Notifier
	identity statesman.Identity
	catalog  statesman.Catalog
	capturer statesman.Capturer
	batcher  statesman.Batcher
	backend  Backend
	opts     Options
	mux      *http.ServeMux
	requests counters
	appends  atomic.Int64
	watchers atomic.Int64
}

// New makes the API over store. The store must have every capability that the API offers; one
// that is missing is an error matching errors.ErrUnsupported.
func New(store statesman.Store, backend Backend, opts *Options) (*Server, error) {
	s := &Server{store: store, backend: backend, mux: http.NewServeMux()}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.setDefaults()
	if err := s.require(); err != nil {
		return nil, err
	}
	for _, rt := range s.routes() {
		if !strings.HasPrefix(rt.path, statesPrefix) { // those are routed by hand, see serve
			s.mux.HandleFunc(rt.method+" "+rt.path, s.counted(rt))
		}
	}
	return s, nil
}

func (o *Options) setDefaults() {
	if o.MaxPayload == 0 {
		o.MaxPayload = statesman.DefaultMaxPayload
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		v        *time.Duration
		standard time.Duration
	}{{&o.KeepAlive, 15 * time.Second}, {&o.Poll, time.Second}, {&o.ReadTimeout, time.Minute}, {&o.WriteTimeout, 30 * time.Second}} {
		if *d.v == 0 {
			*d.v = d.standard
		}
	}
}

func (s *Server) require() (err error) {
	need(&err, s.store, &s.feed)
	need(&err, s.store, &s.notifier)
	need(&err, s.store, &s.identity)
	need(&err, s.store, &s.catalog)
	need(&err, s.store, &s.capturer)
	need(&err, s.store, &s.batcher)
	return err
}

func need[T any](err *error, store statesman.Store, v *T) {
	if *err == nil {
		*v, *err = statesman.Require[T](store)
	}
}

// Appends counts the records that were written through the API.
func (s *Server) Appends() int64 { return s.appends.Load() }

// route is one operation of the API. name is its label in metrics.
type route struct {
	method, path, name string
	handle             func(http.ResponseWriter, *http.Request) error
}

const statesPrefix = "/v1/states/"

// routes is the whole API; a test holds openapi.yaml against it.
func (s *Server) routes() []route {
	return []route{
		{"PUT", "/v1/states/{root}/{path}", "put", s.put},
		{"GET", "/v1/states/{root}/{path}", "get", s.get},
		{"DELETE", "/v1/states/{root}/{path}", "delete", s.clear},
		{"GET", "/v1/feed", "feed", s.serveFeed},
		{"POST", "/v1/batch", "batch", s.batch},
		{"GET", "/v1/partitions", "partitions", s.partitions},
		{"POST", "/v1/capture", "capture", s.capture},
		{"GET", "/v1/status", "status", s.status},
		{"GET", "/v1/outboxes", "outboxes", s.outboxes},
		{"POST", "/v1/outboxes/{id}/{action}", "outbox", s.outboxAction},
		{"GET", "/v1/plugins", "plugins", s.plugins},
		{"POST", "/v1/store/verify", "verify", s.verify},
		{"POST", "/v1/store/compact", "compact", s.compact},
		{"GET", "/v1/openapi.yaml", "openapi", s.openAPI},
		{"GET", "/livez", "livez", s.live},
		{"GET", "/readyz", "readyz", s.ready},
		{"GET", "/metrics", "metrics", s.metrics},
	}
}

// serve routes a request that passed the guard. States are routed by hand: ServeMux would answer
// a path with "//" or ".." by a redirect, where the address rules have something to say.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.EscapedPath(), statesPrefix) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		for _, rt := range s.routes() {
			if rt.method == method && strings.HasPrefix(rt.path, statesPrefix) {
				s.counted(rt)(w, r)
				return
			}
		}
		w.Header().Set("Allow", "GET, HEAD, PUT, DELETE")
		s.fail(w, r, api.NewProblem(api.CodeMethod, "%s is not possible on a state", r.Method))
		return
	}
	if _, pattern := s.mux.Handler(r); pattern == "" {
		s.noRoute(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// noRoute tells a wrong method from a wrong path.
func (s *Server) noRoute(w http.ResponseWriter, r *http.Request) {
	for _, rt := range s.routes() {
		probe := r.Clone(r.Context())
		probe.Method = rt.method
		if _, pattern := s.mux.Handler(probe); pattern == rt.method+" "+rt.path {
			w.Header().Set("Allow", rt.method)
			s.fail(w, r, api.NewProblem(api.CodeMethod, "%s is not possible on %s", r.Method, r.URL.Path))
			return
		}
	}
	p := api.NewProblem(api.CodeNoRoute, "there is no %s in this API", r.URL.Path)
	p.Hint = "see /v1/openapi.yaml"
	s.fail(w, r, p)
}

// counted runs a route's handler, turns its error into an answer, and counts the request.
func (s *Server) counted(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				s.crashed(rec, r, p)
			}
			s.requests.add(rt.name, rec.code())
		}()
		if err := rt.handle(rec, r); err != nil {
			s.failWith(rec, r, err)
		}
	}
}
