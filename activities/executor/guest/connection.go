package guest

import (
	"context"
	"errors"
	"time"

	"golang.org/x/crypto/ssh"
)

// errSilent is the reason for closing a connection that does not answer keep-alives.
var errSilent = errors.New("the machine does not answer")

// connection is one login to the machine.
type connection struct {
	client *ssh.Client
	pool   *pool
	// ended is closed when the connection has broken or was closed.
	ended chan struct{}
	// listeners are the ports that the machine listens on for this connection.
	listeners listeners
	// uses counts the open channels. The pool's lock guards it.
	uses int
	// used is true once the connection has had a channel. The pool's lock guards it.
	used bool
}

// newConnection takes over a login and sends keep-alives until it ends.
func newConnection(client *ssh.Client, p *pool) *connection {
	c := &connection{client: client, pool: p, ended: make(chan struct{})}
	go func() {
		_ = client.Wait()
		close(c.ended)
		c.listeners.closeAll()
	}()
	go c.accept(client.HandleChannelOpen("forwarded-tcpip"))
	go c.keepAlive(p.keepAlive)
	return c
}

// keepAlive closes the connection if the machine does not answer in time although it is not paused. It tries twice,
// because the machine may have been resumed while the first answer was due.
func (c *connection) keepAlive(every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-c.ended:
			return
		case <-ticker.C:
		}
		for try := 0; !c.hasEnded() && !c.pool.isPaused(); try++ {
			ctx, cancel := context.WithTimeoutCause(context.Background(), every, errSilent)
			err := c.ping(ctx)
			cancel()
			if err == nil || c.pool.isPaused() {
				break
			}
			if try == 1 {
				_ = c.client.Close()
				break
			}
		}
	}
}

// ping waits for an answer of the sshd. An sshd that does not know the request answers, too.
func (c *connection) ping(ctx context.Context) error {
	_, _, err := c.request(ctx, "keepalive@openssh.com", nil)
	return err
}

// request sends a global request and waits for its answer.
func (c *connection) request(ctx context.Context, name string, payload []byte) (ok bool, answer []byte, err error) {
	type reply struct {
		ok     bool
		answer []byte
	}
	var r reply
	err = await(ctx, func() (err error) {
		r.ok, r.answer, err = c.client.SendRequest(name, true, payload)
		return err
	}, nil)
	if err != nil {
		return false, nil, err // r may still be written to
	}
	return r.ok, r.answer, nil
}

// open opens a channel. An *ssh.OpenChannelError is a refusal by the sshd.
func (c *connection) open(ctx context.Context, kind string, payload []byte) (ssh.Channel, <-chan *ssh.Request, error) {
	var channel ssh.Channel
	var requests <-chan *ssh.Request
	err := await(ctx, func() (err error) {
		channel, requests, err = c.client.OpenChannel(kind, payload)
		return err
	}, func() {
		go ssh.DiscardRequests(requests)
		_ = channel.Close()
	})
	if err != nil {
		return nil, nil, err
	}
	return channel, requests, nil
}

func (c *connection) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}
