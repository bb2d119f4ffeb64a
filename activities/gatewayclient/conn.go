package gatewayclient

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// dialTimeout bounds one attempt to connect. silentTimeout bounds it if another gateway can be tried instead, and
	// bounds the identification of one gateway.
	dialTimeout   = 5 * time.Second
	silentTimeout = 3 * time.Second
	// eachTimeout bounds a try of Each.
	eachTimeout = 6 * time.Second
	// pingTimeout is how long a connection may be silent before it is probed, and how long the answer may take.
	pingTimeout = 5 * time.Second
)

// Options configures how gateways are reached.
type Options struct {
	// Token returns the token to log in with, or "" to send none. It is called before each request, so that the token may be
	// replaced. A nil Token sends none either.
	Token func() string
	// TLS configures connections to gateways with https URLs. nil means the certificate authorities of the system.
	TLS *tls.Config
	// Identify returns the identity of the store of the gateway at a URL, which client reaches. If it is set, all gateways
	// that are used have the same store. nil means that stores do not matter.
	Identify func(ctx context.Context, client *http.Client, url string) (string, error)
}

// Conn sends requests to the gateways of a list. It is safe for concurrent use.
type Conn struct {
	// HTTP sends requests. A request whose URL begins with URL goes to the gateway in use. Requests to other places, such
	// as after a redirect, carry no token.
	HTTP *http.Client
	// URL is the base URL of requests, without a trailing slash.
	URL string

	list      List
	options   Options
	choice    *choice
	transport *http.Transport
}

// New returns a connection to the gateways of a list. It does not connect yet.
func New(list List, o Options) *Conn {
	patience := dialTimeout
	if len(list) > 1 {
		patience = silentTimeout
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: patience}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		Protocols:           new(http.Protocols),
		TLSClientConfig:     o.TLS,
		// Pings detect a gateway that has disappeared silently.
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingTimeout, PingTimeout: pingTimeout},
	}
	if list.scheme() == "http" {
		transport.Protocols.SetUnencryptedHTTP2(true)
	} else {
		transport.Protocols.SetHTTP1(true)
		transport.Protocols.SetHTTP2(true)
	}
	c := &Conn{URL: list[0].String(), list: list, options: o, choice: newChoice(list, o.Identify != nil), transport: transport}
	c.HTTP = &http.Client{Transport: mover{c}}
	return c
}

// Token returns the token to log in with, or "".
func (c *Conn) Token() string {
	if c.options.Token == nil {
		return ""
	}
	return c.options.Token()
}

// TLS returns the configuration for connections to gateways with https URLs. nil means the authorities of the system.
func (c *Conn) TLS() *tls.Config { return c.options.TLS }

// List returns the gateways.
func (c *Conn) List() List { return c.list }

// InUse returns the URL of the gateway that answered last, or of the one that is tried first. changed is closed when
// another gateway answers instead.
func (c *Conn) InUse() (gateway string, changed <-chan struct{}) {
	i, changed := c.choice.inUse()
	return c.choice.urls[i], changed
}

// Each calls try with the gateway in use and then, while the gateway does not answer, with each other one. ctx of try ends after
// eachTimeout if there are several gateways. answered reports whether the gateway has answered, even if with an error, which Each
// then returns.
func (c *Conn) Each(ctx context.Context, try func(ctx context.Context, gateway string) (answered bool, err error)) error {
	return c.each(ctx, func(i int) (outcome, error) {
		tryCtx, cancel := ctx, func() {}
		if len(c.list) > 1 {
			tryCtx, cancel = context.WithTimeout(ctx, eachTimeout)
		}
		defer cancel()
		answered, err := try(tryCtx, c.choice.urls[i])
		switch {
		case err == nil || answered:
			return hasAnswer, err
		default:
			return isSilent, err
		}
	})
}

// outcome says what a try means for its gateway and for the next try.
type outcome int

const (
	hasAnswer outcome = iota // the gateway has answered
	isLost                   // the gateway has failed, and may have carried out the request
	isSilent                 // the gateway has failed, and another one may be tried
)

func (c *Conn) each(ctx context.Context, try func(i int) (outcome, error)) error {
	var reasons []Reason
	for _, i := range c.choice.order() {
		result, err := isSilent, c.confirm(ctx, i)
		if err == nil {
			result, err = try(i)
		}
		if result == hasAnswer {
			c.choice.hasAnswered(i)
			return err
		}
		if ctx.Err() != nil {
			return err // which says nothing about the gateway
		}
		c.choice.hasFailed(i)
		if len(c.list) == 1 {
			return err
		}
		reasons = append(reasons, Reason{c.choice.urls[i], err})
		if result == isLost {
			break
		}
	}
	return &UnreachableError{reasons}
}

// confirm identifies a gateway unless it is known to have the wanted store.
func (c *Conn) confirm(ctx context.Context, i int) error {
	if !c.choice.needsIdentity(i) {
		return nil
	}
	_, err := c.identify(ctx, i)
	return err
}

func (c *Conn) identify(ctx context.Context, i int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, silentTimeout)
	defer cancel()
	identity, err := c.options.Identify(ctx, &http.Client{Transport: pinned{c, i}}, c.choice.urls[i])
	if err != nil {
		return "", fmt.Errorf("its store cannot be identified: %w", err)
	}
	return identity, c.choice.identify(i, identity)
}

// Identify returns the identity of the store of the gateway in use, which it asks for. If that gateway does not answer or
// has another store than the others, Identify asks all others at once and moves to one that answers. It takes at most twice
// silentTimeout. Options.Identify must be set.
func (c *Conn) Identify(ctx context.Context) (string, error) {
	order := c.choice.order()
	identity, err := c.identify(ctx, order[0])
	if err == nil {
		c.choice.hasAnswered(order[0])
		return identity, nil
	}
	if ctx.Err() != nil {
		return "", err
	}
	c.choice.hasFailed(order[0])
	if len(order) == 1 {
		return "", err
	}
	type answer struct {
		i        int
		identity string
		err      error
	}
	answers := make(chan answer, len(order))
	for _, i := range order[1:] {
		go func() { // ends within silentTimeout
			identity, err := c.identify(ctx, i)
			answers <- answer{i, identity, err}
		}()
	}
	reasons := []Reason{{c.choice.urls[order[0]], err}}
	for range order[1:] {
		a := <-answers
		if a.err == nil {
			c.choice.moveTo(a.i)
			c.choice.hasAnswered(a.i)
			return a.identity, nil
		}
		reasons = append(reasons, Reason{c.choice.urls[a.i], a.err})
	}
	return "", &UnreachableError{reasons}
}

// Expect lets the connection use only gateways whose store has an identity. by names what the identity comes from.
func (c *Conn) Expect(identity, by string) { c.choice.expect(identity, by) }

// Close closes idle connections.
func (c *Conn) Close() { c.transport.CloseIdleConnections() }

// mover sends requests to the gateway in use, and to the next one while that is silent.
type mover struct{ *Conn }

// RoundTrip sends a request. It sends the request again, to another gateway, only if no gateway can have received it, or if
// the call has no side effects.
func (m mover) RoundTrip(r *http.Request) (*http.Response, error) {
	path, isOurs := m.pathOf(r.URL)
	if !isOurs {
		return m.transport.RoundTrip(r)
	}
	var response *http.Response
	body := r.Body // nil once a try has taken it, and closes it
	err := m.each(r.Context(), func(i int) (_ outcome, err error) {
		if body == nil && r.GetBody != nil {
			if body, err = r.GetBody(); err != nil {
				return isLost, err
			}
		}
		taken := body
		body = nil
		var isSent bool
		if response, isSent, err = m.send(r, i, path, taken); err == nil {
			return hasAnswer, nil
		}
		isRepeatable := !isSent || r.Context().Value(repeatable{}) != nil
		if isRepeatable && (r.Body == nil || r.Body == http.NoBody || r.GetBody != nil) {
			return isSilent, err
		}
		return isLost, err
	})
	if body != nil {
		_ = body.Close()
	}
	return response, err
}

// pathOf returns the part of a URL behind the base URL of requests, and whether the URL begins with that.
func (c *Conn) pathOf(u *url.URL) (path string, isOurs bool) {
	base := c.list[0]
	path, isBelow := strings.CutPrefix(u.Path, base.Path)
	return path, isBelow && u.Scheme == base.Scheme && u.Host == base.Host
}

// send sends a request to a path of a gateway, with the token. isSent reports whether the gateway may have received it.
func (c *Conn) send(r *http.Request, i int, path string, body io.ReadCloser) (response *http.Response, isSent bool, err error) {
	var connected atomic.Bool
	out := r.Clone(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}))
	out.Body = body
	out.URL.Scheme, out.URL.Host, out.URL.Path, out.URL.RawPath = c.list[i].Scheme, c.list[i].Host, c.list[i].Path+path, ""
	out.Host = c.list[i].Host
	if token := c.Token(); token != "" {
		out.Header.Set("Authorization", "Bearer "+token)
	}
	response, err = c.transport.RoundTrip(out)
	return response, connected.Load(), err
}

// pinned sends requests to one gateway of a list.
type pinned struct {
	*Conn
	i int
}

// RoundTrip sends a request.
func (p pinned) RoundTrip(r *http.Request) (*http.Response, error) {
	response, _, err := p.send(r, p.i, strings.TrimPrefix(r.URL.Path, p.list[p.i].Path), r.Body)
	return response, err
}
