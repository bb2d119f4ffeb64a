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

// Path is where the figures are served.
const Path = "/metrics"

// Server serves the figures of a process that has no other HTTP server.
type Server struct {
	listener net.Listener
	stop     func() error
}

// Listen serves the figures at an address, host:port, where port 0 is a free one
// and no host is the loopback address. It returns once the port is bound; Close
// ends it.
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

// URL is where the figures are.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + Path }

// Close stops the server. A second Close does nothing.
func (s *Server) Close() error { return s.stop() }
