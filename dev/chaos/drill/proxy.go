package drill

import (
	"context"
	"net"
	"sync"
	"time"
)

// Proxy passes TCP connections on to an address, until it is asked to drop what
// comes. Dropping is silent, as on a network that loses every packet: open
// connections stay open, new ones are accepted and stay dumb. What was sent
// meanwhile arrives after Restore, as TCP would send it again. It is safe for
// concurrent use.
type Proxy struct {
	listener net.Listener
	target   string
	ctx      context.Context
	cancel   context.CancelFunc
	serving  sync.WaitGroup

	mu   sync.Mutex
	open chan struct{} // closed while traffic may pass
}

// dialTimeout bounds a connection to the target.
const dialTimeout = 10 * time.Second

// StartProxy starts a proxy on a free port of the loopback interface. Close ends it.
func StartProxy(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, target: target, open: make(chan struct{})}
	close(p.open)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			p.serving.Go(func() { p.serve(conn) })
		}
	})
	return p, nil
}

// Address is where the proxy listens, host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Cut drops all traffic from now on, both ways.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
		p.open = make(chan struct{})
	default:
	}
}

// Restore lets traffic pass again.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

// Close ends all connections.
func (p *Proxy) Close() {
	p.cancel()
	_ = p.listener.Close()
	p.serving.Wait()
}

// serve carries one connection until an end of it, or the proxy, closes it.
func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	if !p.pass() {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, dialTimeout)
	defer cancel()
	server, err := new(net.Dialer).DialContext(ctx, "tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	var copies sync.WaitGroup
	stop := context.AfterFunc(p.ctx, func() { _, _ = client.Close(), server.Close() })
	defer stop()
	copies.Go(func() { p.copy(server, client) })
	copies.Go(func() { p.copy(client, server) })
	copies.Wait()
}

// copy passes bytes on; the end of one direction ends both once that may be seen.
func (p *Proxy) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !p.pass() {
			break
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_, _ = to.Close(), from.Close()
}

// pass waits until traffic may pass; false: the proxy has been closed.
func (p *Proxy) pass() bool {
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	select {
	case <-open:
		return true
	case <-p.ctx.Done():
		return false
	}
}
