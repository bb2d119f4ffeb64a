package guest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	// maxBacklog bounds the connections that wait to be accepted by one listener.
	maxBacklog = 64
	// unlistenWait is how long a machine may take to stop listening.
	unlistenWait = 5 * time.Second
	// loopback is the address that a machine is asked to listen on.
	loopback = "127.0.0.1"
)

// endpoint is the address on which an sshd listens (RFC 4254, section 7.1).
type endpoint struct {
	Host string
	Port uint32
}

// Listen accepts TCP connections on a port of the machine's loopback interface; port 0 picks a free one. The listener
// closes when ctx or the connection to the machine ends. A Refusal means that the sshd does not listen on the port.
func (g *Guest) Listen(ctx context.Context, port int) (net.Listener, error) {
	if port < 0 || port > 65535 {
		return nil, refuse("%d is not a port: ports are from 1 to 65535", port)
	}
	bounded, done := g.attemptContext(ctx)
	defer done()
	c, at, err := g.listen(bounded, port)
	if err != nil {
		return nil, err
	}
	l := &listener{connection: c, at: at, incoming: make(chan *stream, maxBacklog), closed: make(chan struct{})}
	if !c.listeners.add(l) {
		g.network.release(c)
		return nil, fmt.Errorf("listen on a port of the machine: %w", errBroken)
	}
	stops := []func() bool{
		context.AfterFunc(ctx, func() { _ = l.Close() }),
		context.AfterFunc(g.life, func() { _ = l.Close() }),
	}
	go func() {
		<-l.closed
		for _, stop := range stops {
			stop()
		}
	}()
	return l, nil
}

// listen makes the sshd listen, and returns the connection and the address.
func (g *Guest) listen(ctx context.Context, port int) (*connection, endpoint, error) {
	at := endpoint{loopback, uint32(port)}
	for broken := 1; ; broken++ {
		c, _, err := g.network.borrow(ctx, nil)
		if err != nil {
			return nil, at, err
		}
		c.listeners.announce()
		ok, answer, err := c.forward(ctx, at)
		if err == nil && ok {
			return c, endpoint{loopback, answer}, nil
		}
		c.listeners.withdraw()
		g.network.release(c)
		switch {
		case context.Cause(ctx) != nil:
			return nil, at, context.Cause(ctx)
		case err == nil && port == 0:
			return nil, at, refuse("the sshd of the machine does not allow port forwarding; set AllowTcpForwarding to yes in its sshd_config")
		case err == nil:
			return nil, at, refuse("the sshd of the machine cannot listen on port %d: the port is in use, requires root, or AllowTcpForwarding is off", port)
		}
		g.network.remove(c)
		if broken == maxBroken {
			return nil, at, fmt.Errorf("listen on a port of the machine: %w", err)
		}
	}
}

// forward asks the sshd to listen. It returns the answer and the port.
func (c *connection) forward(ctx context.Context, at endpoint) (ok bool, port uint32, err error) {
	err = await(ctx, func() error {
		accepted, answer, err := c.client.SendRequest("tcpip-forward", true, ssh.Marshal(at))
		ok, port = accepted, at.Port
		if err != nil || !ok || port != 0 {
			return err
		}
		var chosen struct{ Port uint32 }
		err = ssh.Unmarshal(answer, &chosen)
		port = chosen.Port
		return err
	}, func() {
		if ok {
			c.cancelForward(endpoint{at.Host, port})
		}
	})
	if err != nil {
		return false, 0, err
	}
	return ok, port, nil
}

// cancelForward asks the sshd to stop listening, and waits for its answer. Dropbear cannot stop for a port that it has
// chosen itself: it listens until the connection ends. Such a connection is retired, so that it gets no new uses.
func (c *connection) cancelForward(at endpoint) {
	ctx, cancel := context.WithTimeout(context.Background(), unlistenWait)
	defer cancel()
	if ok, _, err := c.request(ctx, "cancel-tcpip-forward", ssh.Marshal(at)); err != nil || !ok {
		c.pool.retire(c)
	}
}

// listener accepts connections in the machine.
type listener struct {
	connection *connection
	at         endpoint
	incoming   chan *stream
	once       sync.Once
	closed     chan struct{}
}

// Accept returns the next connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case s := <-l.incoming:
		return s, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Addr returns where the machine listens.
func (l *listener) Addr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(l.at.Host), Port: int(l.at.Port)}
}

// Close closes the listener and the connections that were not accepted. It waits at most unlistenWait for the machine.
func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.connection.listeners.remove(l)
		l.connection.cancelForward(l.at)
		for {
			select {
			case s := <-l.incoming:
				_ = s.Close()
				continue
			default:
			}
			break
		}
		l.connection.pool.release(l.connection)
	})
	return nil
}

// listeners are the listeners of one connection.
type listeners struct {
	mu  sync.Mutex
	all []*listener
	// beginning counts listeners whose port is not known yet. changed is closed when their number reaches 0.
	beginning int
	changed   chan struct{}
	ended     bool
}

// announce announces a new listener. The caller must follow it with withdraw or add.
func (ls *listeners) announce() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.beginning == 0 {
		ls.changed = make(chan struct{})
	}
	ls.beginning++
}

// withdraw removes the announcement of a listener that could not be opened.
func (ls *listeners) withdraw() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.finishLocked()
}

func (ls *listeners) finishLocked() {
	if ls.beginning--; ls.beginning == 0 {
		close(ls.changed)
	}
}

// add adds an announced listener. It returns false if the connection has ended.
func (ls *listeners) add(l *listener) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.finishLocked()
	if ls.ended {
		return false
	}
	ls.all = append(ls.all, l)
	return true
}

func (ls *listeners) remove(l *listener) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.all = slices.DeleteFunc(ls.all, func(other *listener) bool { return other == l })
}

// closeAll closes the listeners of a connection that has ended.
func (ls *listeners) closeAll() {
	ls.mu.Lock()
	all := ls.all
	ls.all, ls.ended = nil, true
	ls.mu.Unlock()
	for _, l := range all {
		_ = l.Close()
	}
}

// find returns the listener of a port, or nil. In that case it also returns a channel to wait for before another
// attempt, or nil if no listener is being added.
func (ls *listeners) find(port uint32) (*listener, <-chan struct{}) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.all {
		if l.at.Port == port {
			return l, nil
		}
	}
	if ls.beginning == 0 {
		return nil, nil
	}
	return nil, ls.changed
}

// accept passes connections from the machine to the listeners until the SSH connection ends.
func (c *connection) accept(incoming <-chan ssh.NewChannel) {
	if incoming == nil {
		return // Connect has its own listeners
	}
	waiting := make(chan struct{}, maxBacklog)
	for offered := range incoming {
		var m struct {
			Host       string
			Port       uint32
			OriginHost string
			OriginPort uint32
		}
		if ssh.Unmarshal(offered.ExtraData(), &m) != nil {
			_ = offered.Reject(ssh.ConnectionFailed, "the request is malformed")
			continue
		}
		origin := &net.TCPAddr{IP: net.ParseIP(m.OriginHost), Port: int(m.OriginPort)}
		l, changed := c.listeners.find(m.Port)
		if changed == nil {
			l.enqueue(c, offered, origin)
			continue
		}
		// The connection arrived before the answer that names its port.
		select {
		case waiting <- struct{}{}:
			go func() {
				defer func() { <-waiting }()
				select {
				case <-changed:
				case <-c.ended:
				}
				l, _ := c.listeners.find(m.Port)
				l.enqueue(c, offered, origin)
			}()
		default:
			_ = offered.Reject(ssh.ResourceShortage, "too many connections wait")
		}
	}
}

// enqueue queues a connection from the machine. It rejects the connection if the listener is nil or its queue is full.
func (l *listener) enqueue(c *connection, offered ssh.NewChannel, origin net.Addr) {
	if l == nil || len(l.incoming) == cap(l.incoming) {
		_ = offered.Reject(ssh.ResourceShortage, "no listener accepts the connection")
		return
	}
	accepted, requests, err := offered.Accept()
	if err != nil {
		return
	}
	c.pool.retain(c)
	s := newStream(&channel{
		Channel: accepted, requests: requests, connection: c, release: sync.OnceFunc(func() { c.pool.release(c) }),
	}, l.Addr(), origin)
	select {
	case <-l.closed:
		_ = s.Close()
		return
	default:
	}
	select {
	case l.incoming <- s:
	default:
		_ = s.Close()
	}
}
