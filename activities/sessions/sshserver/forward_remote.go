package sshserver

import (
	"context"
	"net"
	"strconv"

	"golang.org/x/crypto/ssh"
)

// endpoint is the address at which a client requests connections to be accepted (RFC 4254, section 7.1).
type endpoint struct {
	Host string
	Port uint32
}

// isLocal reports whether the endpoint is allowed on the attempt's loopback interface. A request for all interfaces also gets
// the loopback interface, as in sshd without GatewayPorts.
func (e endpoint) isLocal() bool {
	switch e.Host {
	case "", "*", "localhost", "127.0.0.1", "::1", "0.0.0.0", "::":
		return e.Port <= 65535
	}
	return false
}

// listen creates a listener in the attempt for a client. It returns the reply to the client's request.
func (c *connection) listen(ctx context.Context, payload []byte) (ok bool, answer []byte) {
	var at endpoint
	if ssh.Unmarshal(payload, &at) != nil || !at.isLocal() {
		return false, nil
	}
	asked := at.Port
	c.mu.Lock()
	refused := c.ended || len(c.listeners) >= maxListeners || asked != 0 && c.listeners[at] != nil
	c.mu.Unlock()
	if refused {
		return false, nil
	}
	listener, err := c.listenInside(ctx, int(asked))
	if err != nil {
		c.config.Logger.Debug("cannot listen on a port of an attempt", "port", asked, "error", err)
		return false, nil
	}
	_, text, _ := net.SplitHostPort(listener.Addr().String())
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil && asked == 0 {
		_ = listener.Close()
		return false, nil
	}
	if asked == 0 {
		at.Port = uint32(port)
	}
	c.mu.Lock()
	if refused = c.ended || c.listeners[at] != nil; !refused {
		c.listeners[at] = listener
	}
	c.mu.Unlock()
	if refused {
		_ = listener.Close()
		return false, nil
	}
	c.work.Go(func() { c.acceptInside(ctx, at, listener) })
	if asked != 0 {
		return true, nil
	}
	return true, ssh.Marshal(struct{ Port uint32 }{at.Port})
}

// listenInside creates a listener in the attempt. The listener ends with the context that Listen gets, so that context outlives
// this call.
func (c *connection) listenInside(ctx context.Context, port int) (net.Listener, error) {
	type made struct {
		listener net.Listener
		err      error
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan made)
	limit, stop := context.WithTimeout(ctx, dialTimeout)
	defer stop()
	c.work.Go(func() {
		listener, err := c.config.Inside.Listen(ctx, port)
		select {
		case done <- made{listener, err}:
		case <-limit.Done():
			if err == nil {
				_ = listener.Close()
			}
		}
	})
	select {
	case m := <-done:
		if m.err != nil {
			cancel()
			return nil, m.err
		}
		return &endingListener{m.listener, cancel}, nil
	case <-limit.Done():
		cancel()
		return nil, limit.Err()
	}
}

// endingListener cancels its context when it is closed.
type endingListener struct {
	net.Listener
	end context.CancelFunc
}

func (l *endingListener) Close() error {
	defer l.end()
	return l.Listener.Close()
}

// acceptInside forwards connections to the client until the listener closes.
func (c *connection) acceptInside(ctx context.Context, at endpoint, listener net.Listener) {
	defer func() {
		_ = listener.Close()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.listeners[at] == listener {
			delete(c.listeners, at)
		}
	}()
	for {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		if !c.addChannel() {
			_ = near.Close()
			continue
		}
		c.work.Go(func() {
			defer c.removeChannel()
			c.passOn(ctx, at, near)
		})
	}
}

// passOn opens a channel to the client for a connection from the attempt.
func (c *connection) passOn(ctx context.Context, at endpoint, near net.Conn) {
	m := struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}{Host: at.Host, Port: at.Port, Origin: "127.0.0.1"}
	if near.RemoteAddr() != nil {
		if host, port, err := net.SplitHostPort(near.RemoteAddr().String()); err == nil {
			n, _ := strconv.ParseUint(port, 10, 16) // 0 for an invalid port, which is no reason to refuse
			m.Origin, m.OriginPort = host, uint32(n)
		}
	}
	channel, requests, err := c.conn.OpenChannel("forwarded-tcpip", ssh.Marshal(m))
	if err != nil {
		_ = near.Close()
		return
	}
	relay(ctx, channel, requests, near)
}

// cancelListener closes a listener of a client and reports whether it existed. Its connections stay open.
func (c *connection) cancelListener(payload []byte) bool {
	var at endpoint
	if ssh.Unmarshal(payload, &at) != nil {
		return false
	}
	c.mu.Lock()
	listener := c.listeners[at]
	delete(c.listeners, at)
	c.mu.Unlock()
	if listener == nil {
		return false
	}
	_ = listener.Close()
	return true
}

// closeListeners closes all listeners and refuses new ones.
func (c *connection) closeListeners() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, listener := range c.listeners {
		_ = listener.Close()
	}
}
