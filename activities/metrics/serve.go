package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"switchyard/activities/httpguard"
)

// Path is the URL path of the metrics.
const Path = "/metrics"

// Server serves the metrics of a process that has no other HTTP server.
type Server struct {
	listener net.Listener
	stop     func() error
}

// Listen serves the metrics at an address, host:port. Port 0 selects a free port, and an empty host the loopback address.
// Listen returns once the port is bound. Close ends the server.
func (m *Metrics) Listen(ctx context.Context, address string) (*Server, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("serve metrics on %s: %w", address, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("serve metrics on %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, m.Handler())
	server := &http.Server{Handler: httpguard.Guard{}.Protect(mux), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return &Server{listener: listener, stop: sync.OnceValue(func() error {
		err := server.Close()
		if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
			err = errors.Join(err, serveErr)
		}
		return err
	})}, nil
}

// URL returns the address of the metrics.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + Path }

// Close stops the server. A second Close is a no-op.
func (s *Server) Close() error { return s.stop() }
