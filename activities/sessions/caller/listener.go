package caller

import (
	"context"
	"net"
	"sync"

	"switchyard/activities/sessions/wire"
)

// Listen accepts connections on a port of the attempt. Closing the listener, or the end of ctx, also closes the connections
// that it has accepted.
func (i inside) Listen(ctx context.Context, port int) (net.Listener, error) {
	h, err := portHeader(wire.KindListen, port, 0)
	if err != nil {
		return nil, err
	}
	stream, reply, err := i.open(ctx, h)
	if err != nil {
		return nil, err
	}
	session := wire.NewSession(stream, true)
	l := &listener{session: session, port: int(reply.GetPort())}
	l.stop = context.AfterFunc(ctx, func() { _ = session.Close() })
	return l, nil
}

// listener listens on a port of an attempt.
type listener struct {
	session *wire.Session
	port    int
	stop    func() bool

	mu     sync.Mutex
	closed bool
}

// Accept returns the next connection, or net.ErrClosed after the listener was closed.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.session.Accept()
	if err == nil {
		return conn, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, net.ErrClosed
	}
	return nil, err
}

// Close closes the listener and its connections.
func (l *listener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	return l.session.Close()
}

// Addr returns the port, on the attempt's loopback interface.
func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: l.port} }
