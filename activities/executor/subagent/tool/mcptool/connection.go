package mcptool

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// connection is one connection to a server.
type connection struct {
	session *sdk.ClientSession
	// program is the program that serves the connection, or nil for an HTTP service.
	program *program
	// idle closes idle HTTP connections to a service. It may be nil.
	idle func()
	// lost is closed when the session has ended, whichever side ended it.
	lost chan struct{}
}

// connect starts the server if it is a program, and begins a session with a protocol version.
func (s *server) connect(ctx context.Context, version string) (*connection, error) {
	c := &connection{lost: make(chan struct{})}
	var transport sdk.Transport
	if len(s.spec.GetCommand()) > 0 {
		p, err := s.start()
		if err != nil {
			return nil, fmt.Errorf("start MCP server %q: %w", s.name, err)
		}
		c.program = p
		transport = &sdk.IOTransport{Reader: p.answers, Writer: p.requests, MaxLineLength: maxMessage + 1}
		// Abandoning unblocks the session if the program neither reads nor writes.
		stop := context.AfterFunc(ctx, p.abandon)
		defer stop()
	} else {
		transport, c.idle = s.service()
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "switchyard", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	session, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		} else {
			err = fmt.Errorf("MCP server %q failed to initialize: %w", s.name, err)
		}
		if c.program != nil {
			c.program.end(s.o.stopLimit)
		}
		if c.idle != nil {
			c.idle()
		}
		return nil, c.explain(err)
	}
	c.session = session
	go func() {
		defer close(c.lost)
		_ = session.Wait()
	}()
	return c, nil
}

// isLost reports whether the session has ended.
func (c *connection) isLost() bool {
	select {
	case <-c.lost:
		return true
	default:
		return c.program != nil && c.program.hasEnded()
	}
}

// explain adds to an error how the program ended and what it printed last.
func (c *connection) explain(err error) error {
	if c.program == nil {
		return err
	}
	return fmt.Errorf("%w%s", err, c.program.endingSummary())
}

// abandon ends an unresponsive session without waiting for it.
func (c *connection) abandon() {
	if c.program != nil {
		c.program.abandon()
	}
}

// close ends the session and the program. No call may be in flight.
func (c *connection) close() error {
	err := c.session.Close()
	if c.program != nil {
		// A program that has ended has already closed its pipes, so the session's error means nothing.
		c.program.end(c.program.server.o.stopLimit)
		err = nil
	}
	<-c.lost
	if c.idle != nil {
		c.idle()
		err = nil // an unavailable service has no session to end
	}
	return err
}

// service returns the transport to an HTTP server, and a function that closes its idle connections.
func (s *server) service() (transport *sdk.StreamableClientTransport, idle func()) {
	next := s.o.Transport
	if next == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		next, idle = own, own.CloseIdleConnections
	}
	return &sdk.StreamableClientTransport{
		Endpoint: s.spec.GetUrl(), DisableStandaloneSSE: true, MaxEventSize: maxMessage,
		HTTPClient: &http.Client{Transport: newHeaderTransport(next, s.spec.GetUrl(), s.spec.GetHeaders())},
	}, idle
}
