package agent

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/statesman-dev/statesman/agent/listen"
)

// Limits of a connection.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = time.Minute
	maxHeader     = 128 << 10 // metadata travels in a header, percent-encoded
)

// bindLocked opens the sockets that the configuration asks for, all or none.
func (a *Agent) bindLocked() (err error) {
	cfg := a.o.Config.API
	defer func() {
		if err != nil {
			err = errors.Join(err, a.closeListenersLocked())
		}
	}()
	if cfg.Socket != "" {
		if a.socket, err = listen.Unix(cfg.Socket); err != nil {
			return err
		}
		a.addServerLocked(a.api.Socket())
	}
	if cfg.Listen == "" {
		return nil
	}
	token, err := listen.Token(cfg.TokenFile)
	if err != nil {
		return err
	}
	if a.tcp, err = listen.TCP(cfg.Listen); err != nil {
		return err
	}
	a.addServerLocked(a.api.TCP(a.tcp.Addr(), token))
	return nil
}

func (a *Agent) closeListenersLocked() error {
	var errs []error
	for _, ln := range []*net.Listener{&a.socket, &a.tcp} {
		if *ln != nil {
			errs = append(errs, (*ln).Close())
			*ln = nil
		}
	}
	a.servers = nil
	return errors.Join(errs...)
}

func (a *Agent) addServerLocked(h http.Handler) {
	a.servers = append(a.servers, &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(a.o.Logger.Handler(), slog.LevelDebug)})
}

// serveLocked serves each listener in a goroutine, which ends when its server is shut down.
func (a *Agent) serveLocked() {
	i := 0
	for _, ln := range []net.Listener{a.socket, a.tcp} {
		if ln == nil {
			continue
		}
		srv := a.servers[i]
		i++
		a.running.Go(func() {
			if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				a.o.Logger.Error("the API stopped answering", "address", ln.Addr().String(), "error", err)
				a.health.apiFailed(err)
			}
		})
	}
}

// stopServingLocked ends streams, lets requests finish, and cuts what is left when ctx ends.
func (a *Agent) stopServingLocked(ctx context.Context) error {
	close(a.streams)
	var errs []error
	for _, srv := range a.servers {
		if err := srv.Shutdown(ctx); err != nil {
			errs = append(errs, err, srv.Close())
		}
	}
	return errors.Join(errs...)
}

// addresses are where the API answers; "" = not there.
type addresses struct{ socket, listen string }

// setBound publishes what Start has bound.
func (a *Agent) setBound(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.started = now
	if a.socket != nil {
		a.bound.socket = a.socket.Addr().String()
	}
	if a.tcp != nil {
		a.bound.listen = a.tcp.Addr().String()
	}
}

// Socket returns the path of the Unix socket, "" when there is none or before Start.
func (a *Agent) Socket() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bound.socket
}

// Listen returns host:port of the TCP listener, "" when there is none or before Start.
func (a *Agent) Listen() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bound.listen
}
