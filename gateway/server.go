package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"switchyard/gateway/sshdoor"
)

// DefaultAddress is where a gateway listens unless it is configured otherwise: on this
// machine only.
const DefaultAddress = "127.0.0.1:7280"

// maxHeaderBytes bounds the headers of a request; a token of an issuer with many groups takes some KiB.
const maxHeaderBytes = 64 << 10

// Server is a gateway that listens.
type Server struct {
	gateway  *Gateway
	scheme   string
	http     *http.Server
	listener net.Listener
	ssh      *sshdoor.Door // nil: no SSH client is served
	served   chan struct{}
	err      error // of Serve, once served is closed
	close    func() error
}

// Listen serves the gateway on an address, host:port, where port 0 is a free one
// and no host is the loopback address. It returns once the port is bound.
func (g *Gateway) Listen(ctx context.Context, address string) (*Server, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	address = net.JoinHostPort(host, port)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("address %s is taken; choose another port for the gateway, or stop what listens there: %w", address, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	s := &Server{gateway: g, scheme: "http", listener: listener, served: make(chan struct{})}
	if g.config.SSHAddress != "" {
		if s.ssh, err = g.listenSSH(ctx); err != nil {
			return nil, errors.Join(err, listener.Close())
		}
	}
	s.http = &http.Server{
		Handler:           g.Handler(),
		Protocols:         new(http.Protocols),
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    maxHeaderBytes,
		IdleTimeout:       2 * time.Minute,
		// A watcher that has gone without a word is noticed by pings.
		HTTP2:    &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		ErrorLog: slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
	s.http.Protocols.SetHTTP1(true)
	serve := func() error { return s.http.Serve(listener) }
	if g.config.TLS != nil {
		s.scheme, s.http.TLSConfig = "https", g.config.TLS.Clone()
		s.http.Protocols.SetHTTP2(true)
		serve = func() error { return s.http.ServeTLS(listener, "", "") }
	} else {
		s.http.Protocols.SetUnencryptedHTTP2(true)
	}
	if g.config.PeerURL == "" {
		g.tunnel.SetURL(s.peerURL())
	}
	s.close = sync.OnceValue(s.shutdown)
	go func() {
		defer close(s.served)
		s.err = serve()
	}()
	return s, nil
}

// Address is where the server listens, host:port.
func (s *Server) Address() string { return s.listener.Addr().String() }

// SSHAddress is where the server listens for SSH clients, host:port, or "" if it does not.
func (s *Server) SSHAddress() string {
	if s.ssh == nil {
		return ""
	}
	return s.ssh.Address()
}

// URL is the base URL for clients of the server.
func (s *Server) URL() string { return s.scheme + "://" + s.Address() }

// peerURL returns where other machines reach the server, or this one if it listens on loopback.
func (s *Server) peerURL() string {
	host, port, err := net.SplitHostPort(s.Address())
	if err != nil {
		return s.URL()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return s.scheme + "://" + net.JoinHostPort(host, port)
}

// Done is closed when the server has stopped listening.
func (s *Server) Done() <-chan struct{} { return s.served }

// Close stops the server and its gateway: streams end with the code Unavailable,
// other calls get some seconds to end. A second Close does nothing.
func (s *Server) Close() error { return s.close() }

// shutdownTimeout is what calls get to end when the server closes.
const shutdownTimeout = 5 * time.Second

func (s *Server) shutdown() error {
	if s.ssh != nil {
		s.ssh.Close() // before what its sessions need
	}
	s.gateway.Close()
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	<-s.served
	if !errors.Is(s.err, http.ErrServerClosed) {
		err = errors.Join(err, s.err)
	}
	if err != nil {
		return fmt.Errorf("close the gateway on %s: %w", s.Address(), err)
	}
	return nil
}
