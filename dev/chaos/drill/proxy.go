package drill

import (
	"context"
	"net"
	"sync"
	"time"
)

// Proxy forwards TCP connections to an address and can drop their traffic. Dropping is silent, as on a network that
// loses every packet: open connections stay open, and new ones are accepted but get no reply. Data sent meanwhile
// arrives after Restore, as if TCP had retransmitted it. A Proxy is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	target   string
	ctx      context.Context
	cancel   context.CancelFunc
	serving  sync.WaitGroup

	mu   sync.Mutex
	open chan struct{} // closed while traffic may pass
}

// dialTimeout bounds the connection to the target.
const dialTimeout = 10 * time.Second

// StartProxy starts a proxy on a free port of the loopback interface. The caller must close it.
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
				return // the listener is closed
			}
			p.serving.Go(func() { p.serve(conn) })
		}
	})
	return p, nil
}

// Address returns the host:port that the proxy listens on.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Cut drops all traffic from now on, in both directions.
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

// Close closes the listener and all connections.
func (p *Proxy) Close() {
	p.cancel()
	_ = p.listener.Close()
	p.serving.Wait()
}

// serve forwards one connection until one of its ends or the proxy closes it.
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

// copy forwards bytes in one direction. The end of one direction ends both, once traffic may pass.
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

// pass waits until traffic may pass. It returns false if the proxy is closed.
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
