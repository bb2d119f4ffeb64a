package gatewayclient

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect"
)

// dialTimeout bounds one attempt to connect.
const dialTimeout = 5 * time.Second

// Options configures how a node reaches a gateway.
type Options struct {
	// Token returns the token to log in with, or "" if there is none. It is called before each call, so that the token may
	// be replaced. A nil Token sends no token.
	Token func() string
	// TLS configures connections to a gateway with an https URL. nil means the certificate authorities of the system.
	TLS *tls.Config
}

// Conn holds what the clients of a gateway's services are built from.
type Conn struct {
	// HTTP sends requests.
	HTTP *http.Client
	// URL is the base URL of the gateway, without a trailing slash.
	URL string
	// LogIn adds the token to each call.
	LogIn connect.ClientOption

	transport *http.Transport
}

// New returns a connection to the gateway at a URL. It does not connect yet.
func New(location string, o Options) (*Conn, error) {
	u, err := url.Parse(location)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the gateway URL must be like http://host:7280")
	}
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		DialContext:     (&net.Dialer{Timeout: dialTimeout}).DialContext,
		Protocols:       new(http.Protocols),
		TLSClientConfig: o.TLS,
		// Pings detect a gateway that has disappeared silently.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 5 * time.Second},
	}
	if u.Scheme == "http" {
		transport.Protocols.SetUnencryptedHTTP2(true)
	} else {
		transport.Protocols.SetHTTP1(true)
		transport.Protocols.SetHTTP2(true)
	}
	return &Conn{
		HTTP: &http.Client{Transport: transport}, URL: strings.TrimSuffix(location, "/"),
		LogIn: connect.WithInterceptors(o.bearer()), transport: transport,
	}, nil
}

// bearer returns an interceptor that adds the token to each call.
func (o Options) bearer() connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			if o.Token != nil {
				if token := o.Token(); token != "" {
					req.Header().Set("Authorization", "Bearer "+token)
				}
			}
			return next(ctx, req)
		}
	}
}

// Close closes idle connections.
func (c *Conn) Close() { c.transport.CloseIdleConnections() }
