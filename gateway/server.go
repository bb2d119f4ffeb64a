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

// DefaultAddress is the address of a gateway unless it is configured otherwise. Only the local machine can
// reach it.
const DefaultAddress = "127.0.0.1:7280"

// maxHeaderBytes bounds the headers of a request. A token of an OIDC issuer with many groups takes some KiB.
const maxHeaderBytes = 64 << 10

// Server is a listening gateway.
type Server struct {
	gateway  *Gateway
	scheme   string
	http     *http.Server
	listener net.Listener
	ssh      *sshdoor.Door // nil if no SSH clients are served
	served   chan struct{}
	err      error // error of Serve, valid once served is closed
	close    func() error
}

// Listen serves the gateway on an address, host:port. Port 0 picks a free port, and an empty host means the
// loopback address. Listen returns once the port is bound.
func (g *Gateway) Listen(ctx context.Context, address string) (*Server, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	address = net.JoinHostPort(host, port)
	g.warnOfTargets(ctx)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("address %s is already in use; choose another port for the gateway, or stop the process that listens there: %w", address, err)
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
		// Pings detect a watcher that has vanished without closing its connection.
		HTTP2:    &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		ErrorLog: slog.NewLogLogger(g.config.Logger.Handler(), slog.LevelDebug),
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

// Address returns the address, host:port, on which the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// SSHAddress returns the address, host:port, on which the server accepts SSH clients, or "" if it accepts
// none.
func (s *Server) SSHAddress() string {
	if s.ssh == nil {
		return ""
	}
	return s.ssh.Address()
}

// URL returns the base URL for clients of the server.
func (s *Server) URL() string { return s.scheme + "://" + s.Address() }

// peerURL returns the URL under which other machines reach the server. If the server listens on loopback,
// only this machine does.
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

// Done returns a channel that is closed when the server has stopped listening.
func (s *Server) Done() <-chan struct{} { return s.served }

// Close stops the server and its gateway. Streams end with the code Unavailable; other calls get
// shutdownTimeout to finish. A second Close is a no-op.
func (s *Server) Close() error { return s.close() }

// shutdownTimeout is the grace period for calls when the server closes.
const shutdownTimeout = 5 * time.Second

func (s *Server) shutdown() error {
	if s.ssh != nil {
		s.ssh.Close() // before the parts that its sessions need
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
