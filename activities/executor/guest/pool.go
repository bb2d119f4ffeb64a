package guest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor"
)

const (
	// maxConnections bounds the connections to one machine.
	maxConnections = 32
	// connectWait bounds a login. An emulated machine under load takes long to compute its keys.
	connectWait = time.Minute
	// maxBroken bounds how many connections may break during one call before it has a channel.
	maxBroken = 3
)

// pool holds the connections to a machine.
type pool struct {
	connect   func(ctx context.Context) (*ssh.Client, error)
	life      context.Context
	keepAlive time.Duration
	isPaused  func() bool
	// isForSessions reports whether the channels are sessions. Some sshds can handle only one session per connection.
	isForSessions bool

	mu      sync.Mutex
	all     []*connection
	dialing *dial
	closed  bool
}

// dial is a login in progress, which all callers share.
type dial struct {
	done chan struct{}
	err  error
}

// channel is an open SSH channel and the connection that it belongs to.
type channel struct {
	ssh.Channel
	requests   <-chan *ssh.Request
	connection *connection
	// release returns the channel to the pool. It must be called after the channel is closed.
	release func()
}

// open opens a channel on an existing connection or a new one. The error is an *ssh.OpenChannelError if the sshd
// refuses the channel.
func (p *pool) open(ctx context.Context, kind string, payload []byte) (*channel, error) {
	tried := map[*connection]bool{}
	broken := 0
	for {
		c, isFirst, err := p.borrow(ctx, tried)
		if err != nil {
			return nil, err
		}
		opened, requests, err := c.open(ctx, kind, payload)
		if err == nil {
			return &channel{Channel: opened, requests: requests, connection: c, release: sync.OnceFunc(func() { p.release(c) })}, nil
		}
		p.release(c)
		tried[c] = true
		_, isRefused := errors.AsType[*ssh.OpenChannelError](err)
		switch {
		case context.Cause(ctx) != nil:
			return nil, context.Cause(ctx)
		case isRefused && (kind != "session" || isFirst):
			return nil, err
		case isRefused: // the connection may have reached its limit of sessions, also of ones that the sshd is still closing
		default:
			p.remove(c)
			if broken++; broken == maxBroken {
				return nil, fmt.Errorf("open a channel to the machine: %w", err)
			}
		}
	}
}

// borrow returns a connection that is not in tried, and counts its use. isFirst reports whether the connection never had
// another channel.
func (p *pool) borrow(ctx context.Context, tried map[*connection]bool) (_ *connection, isFirst bool, err error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, false, executor.ErrNotRunning
		}
		p.all = slices.DeleteFunc(p.all, (*connection).hasEnded)
		for _, c := range p.all {
			if !tried[c] && !(p.isForSessions && c.uses > 0 && isDropbear(c.client)) {
				c.uses++
				isFirst = !c.used
				c.used = true
				p.mu.Unlock()
				return c, isFirst, nil
			}
		}
		if len(p.all) >= maxConnections {
			p.mu.Unlock()
			return nil, false, refuse("the machine has reached the maximum number of sessions; end some and try again")
		}
		d := p.dialing
		if d == nil {
			d = &dial{done: make(chan struct{})}
			p.dialing = d
			go p.dial(d)
		}
		p.mu.Unlock()
		select {
		case <-d.done:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
		if d.err != nil {
			return nil, false, d.err
		}
	}
}

// isDropbear reports whether the sshd is dropbear. Version 2022.83 loses exit codes and more if several programs of a
// connection end at the same time.
func isDropbear(client *ssh.Client) bool {
	return strings.Contains(string(client.ServerVersion()), "dropbear")
}

// dial logs in and adds the connection to the pool.
func (p *pool) dial(d *dial) {
	defer close(d.done)
	ctx, cancel := context.WithTimeoutCause(p.life, connectWait, errSilent)
	defer cancel()
	var client *ssh.Client
	err := await(ctx, func() (err error) {
		client, err = p.connect(ctx)
		return err
	}, func() { _ = client.Close() })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialing = nil
	switch {
	case err != nil && p.life.Err() != nil:
		d.err = context.Cause(p.life)
	case err != nil:
		d.err = fmt.Errorf("log in to the machine: %w", err)
	case p.closed:
		_ = client.Close()
		d.err = executor.ErrNotRunning
	default:
		p.all = append(p.all, newConnection(client, p))
	}
}

// retain counts another use of a connection that is already in use.
func (p *pool) retain(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.uses++
}

// release ends one use of a connection. It closes an unused connection unless that is the only one.
func (p *pool) release(c *connection) {
	p.mu.Lock()
	c.uses--
	isSpare := c.uses == 0 && !(len(p.all) == 1 && p.all[0] == c)
	if isSpare {
		p.dropLocked(c)
	}
	p.mu.Unlock()
	if isSpare {
		_ = c.client.Close()
	}
}

// retire takes a connection out of the pool, so that it gets no new uses.
func (p *pool) retire(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked(c)
}

func (p *pool) dropLocked(c *connection) {
	p.all = slices.DeleteFunc(p.all, func(other *connection) bool { return other == c })
}

// remove retires and closes a broken connection.
func (p *pool) remove(c *connection) {
	p.retire(c)
	_ = c.client.Close()
}

// close closes all connections and prevents new ones.
func (p *pool) close() {
	p.mu.Lock()
	all := p.all
	p.all, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range all {
		_ = c.client.Close()
	}
}
