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

// dialTimeout bounds one try to connect.
const dialTimeout = 5 * time.Second

// Options are how a node reaches a gateway.
type Options struct {
	// Token returns the token to log in with, or "" if there is none. It is called before each call, so that a token may be
	// replaced. A nil Token logs in nowhere.
	Token func() string
	// TLS is how a gateway with an https URL is reached; nil: with the authorities of the system.
	TLS *tls.Config
}

// Conn is what clients of the services of a gateway are made of.
type Conn struct {
	// HTTP sends requests.
	HTTP *http.Client
	// URL is that of the gateway.
	URL string
	// LogIn adds the token to each call.
	LogIn connect.ClientOption

	transport *http.Transport
}

// New returns a connection to the gateway at a URL. It sends nothing yet.
func New(location string, o Options) (*Conn, error) {
	u, err := url.Parse(location)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the URL of a gateway is such as http://host:7280")
	}
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		DialContext:     (&net.Dialer{Timeout: dialTimeout}).DialContext,
		Protocols:       new(http.Protocols),
		TLSClientConfig: o.TLS,
		// A gateway that has gone without a word is noticed by pings.
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

// bearer returns what adds the token to calls.
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
