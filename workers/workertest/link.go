package workertest

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"switchyard/workers"
)

// Link is a network between a node and the server that a test can cut. Data sent during a cut arrives when the link is
// mended, as on a line that loses packets.
type Link struct {
	// Node is the node behind the link.
	Node *workers.Node

	listener net.Listener
	server   string
	ends     sync.WaitGroup

	mu    sync.Mutex
	whole chan struct{} // closed unless the link is cut
	conns []net.Conn
}

// newLink returns a link to a server, which ends with the test.
func newLink(t *testing.T, server string) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{listener: listener, server: server, whole: make(chan struct{})}
	close(l.whole)
	l.ends.Go(l.serve)
	t.Cleanup(func() {
		l.Mend()
		listener.Close()
		l.mu.Lock()
		for _, c := range l.conns {
			c.Close()
		}
		l.mu.Unlock()
		l.ends.Wait()
	})
	return l
}

// address returns where clients connect to the link.
func (l *Link) address() string { return l.listener.Addr().String() }

// serve accepts connections until the listener is closed.
func (l *Link) serve() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", l.server)
		if err != nil {
			near.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, near, far)
		l.mu.Unlock()
		l.ends.Go(func() { l.carry(far, near) })
		l.ends.Go(func() { l.carry(near, far) })
	}
}

// carry copies incoming data while the link is whole.
func (l *Link) carry(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		whole := l.whole
		l.mu.Unlock()
		<-whole
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				from.Close()
			}
			return
		}
	}
}

// Cut stops the data in both directions. Connections stay open.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = make(chan struct{})
}

// Mend delivers the data that were sent during a cut, and everything after them. It is a no-op unless the link is cut.
func (l *Link) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
	default:
		close(l.whole)
	}
}

// StartBehindLink starts a node, as Start does, that reaches the server through a link.
func (c *Nodes) StartBehindLink(short string, change ...func(*workers.NodeConfig)) *Link {
	c.T.Helper()
	l := newLink(c.T, c.Server.Address())
	conn, err := workers.Dial(c.T.Context(), workers.DialOptions{Address: l.address(), Identity: short, Logger: c.Logger})
	if err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(conn.Close)
	l.Node = c.Start(short, append(change, func(cfg *workers.NodeConfig) { cfg.Client = conn })...)
	// The node's stop calls the server, so the link must be mended first.
	c.T.Cleanup(l.Mend)
	return l
}
