package mcptool

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "switchyard/proto/switchyard/v1"
)

// versions are the protocol versions that a connection tries in order; "" is the newest. The older one comes first,
// because servers that know only that one exit at a request other than `initialize`.
var versions = []string{"2025-11-25", ""}

// server is one server of an agent, connected or not.
type server struct {
	name string
	spec *v1.McpServer // with variables expanded
	o    Options
	// ending ends when the agent closes its servers.
	ending context.Context
	// turn holds a value while a goroutine uses connection or closed.
	turn       chan struct{}
	connection *connection // nil if there is none
	closed     bool
}

// newServer returns a server that is not connected yet.
func newServer(ending context.Context, name string, spec *v1.McpServer, o Options) (*server, error) {
	path := "mcpServers." + name
	env, envErr := expandAll(spec.GetEnv(), o.Env, path+".env")
	headers, headersErr := expandAll(spec.GetHeaders(), o.Env, path+".headers")
	if err := errors.Join(envErr, headersErr, checkServer(path, spec)); err != nil {
		return nil, err
	}
	return &server{
		name: name, o: o, ending: ending, turn: make(chan struct{}, 1),
		spec: &v1.McpServer{Command: spec.GetCommand(), Env: env, Url: spec.GetUrl(), Headers: headers, Tools: spec.GetTools()},
	}, nil
}

// checkServer returns an error for a server that is neither a program nor a service.
func checkServer(path string, spec *v1.McpServer) error {
	program, service := len(spec.GetCommand()) > 0, spec.GetUrl() != ""
	switch {
	case program == service:
		return fmt.Errorf("%s: give either a `command` or a `url`", path)
	case program && len(spec.GetHeaders()) > 0:
		return fmt.Errorf("%s.headers: a program gets no headers; use `env`", path)
	case service && len(spec.GetEnv()) > 0:
		return fmt.Errorf("%s.env: a server with a `url` gets no variables; use `headers`", path)
	}
	if service {
		if u, err := url.Parse(spec.GetUrl()); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("%s.url: %q is not a URL such as https://example.com/mcp", path, spec.GetUrl())
		}
	}
	return nil
}

// list connects and returns the tools that the agent gets.
func (s *server) list(ctx context.Context) ([]*sdk.Tool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.connectLimit, s.timeoutError("initialize and list its tools"))
	defer cancel()
	c, err := s.ensureConnected(ctx)
	if err != nil {
		return nil, err
	}
	var all []*sdk.Tool
	for t, err := range c.session.Tools(ctx, nil) {
		switch {
		case err != nil && context.Cause(ctx) != nil:
			return nil, c.explain(context.Cause(ctx))
		case err != nil:
			return nil, c.explain(fmt.Errorf("MCP server %q failed to list its tools: %w", s.name, err))
		case len(all) == maxTools:
			return nil, fmt.Errorf("MCP server %q has more than %d tools", s.name, maxTools)
		}
		all = append(all, t)
	}
	return allow(s.name, all, s.spec.GetTools())
}

// timeoutError returns the error for a server that takes too long.
func (s *server) timeoutError(to string) error {
	return fmt.Errorf("MCP server %q did not %s within %s", s.name, to, s.o.connectLimit)
}

// ensureConnected returns the connection. It connects if there is none, or if the last connection was lost.
func (s *server) ensureConnected(ctx context.Context) (*connection, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.turn }()
	if s.closed {
		return nil, fmt.Errorf("MCP server %q is closed", s.name)
	}
	if s.connection != nil {
		if !s.connection.isLost() {
			return s.connection, nil
		}
		_ = s.connection.close()
		s.connection = nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.connectLimit, s.timeoutError("initialize"))
	defer cancel()
	var errs error
	for _, version := range versions {
		c, err := s.connect(ctx, version)
		if err == nil {
			s.connection = c
			return c, nil
		}
		errs = err
		if !isWrongVersion(err) {
			break
		}
	}
	return nil, errs
}

// isWrongVersion reports whether a server has rejected a protocol version.
func isWrongVersion(err error) bool {
	answer, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && (answer.Code == jsonrpc.CodeMethodNotFound || answer.Code == sdk.CodeUnsupportedProtocolVersion ||
		answer.Code == jsonrpc.CodeInvalidParams && strings.Contains(answer.Message, "version"))
}

// close closes the connection permanently.
func (s *server) close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.closed = true
	if s.connection == nil {
		return nil
	}
	c := s.connection
	s.connection = nil
	return c.close()
}
