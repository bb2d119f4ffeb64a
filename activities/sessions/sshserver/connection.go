package sshserver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor"
)

const (
	// maxChannels bounds the channels of a connection, maxSessions the channels that are sessions, and maxListeners the
	// connection's listeners in the attempt.
	maxChannels, maxSessions, maxListeners = 256, 64, 32
	// dialTimeout bounds the time for connecting to a port of the attempt, or for creating a listener there.
	dialTimeout = 30 * time.Second
)

// Config configures how a connection is served.
type Config struct {
	// Inside is the attempt that the connection gives access to.
	Inside executor.Inside
	// User is the user for programs and file access, or "" for the user of the attempt.
	User string
	// KeepAlive is the interval of keep-alive requests. A client that does not reply within three intervals is disconnected.
	// The default is 15 s.
	KeepAlive time.Duration
	// Farewell is how long programs and clients get to finish before a connection that is ending is closed. The default is
	// 2 s.
	Farewell time.Duration
	// Logger receives debugging messages. The default discards them.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.KeepAlive = cmp.Or(c.KeepAlive, 15*time.Second)
	c.Farewell = cmp.Or(c.Farewell, 2*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// Serve serves a connection until it closes or ctx ends. If ctx ends, clients see its cause. Serve returns after all work
// for the connection has ended.
func Serve(ctx context.Context, conn ssh.Conn, channels <-chan ssh.NewChannel, requests <-chan *ssh.Request, cfg Config) {
	ctx, cancel := context.WithCancel(ctx)
	c := &connection{config: cfg.withDefaults(), conn: conn, listeners: map[endpoint]net.Listener{}}
	closed := make(chan struct{})
	c.work.Go(func() {
		select {
		case <-ctx.Done():
			c.sayFarewell()
			_ = conn.Close() // an error means that it is already closed
		case <-closed:
		}
	})
	c.work.Go(func() { c.serveRequests(ctx, requests) })
	c.work.Go(func() { c.keepAlive(ctx) })
	for offered := range channels { // until the connection closes
		c.accept(ctx, offered)
	}
	close(closed)
	cancel()
	c.closeListeners()
	c.work.Wait()
}

// connection is an SSH connection that is being served.
type connection struct {
	config Config
	conn   ssh.Conn
	work   sync.WaitGroup
	// running is the number of sessions with a running program or SFTP server.
	running atomic.Int32

	mu        sync.Mutex
	channels  int
	sessions  int
	listeners map[endpoint]net.Listener // by the endpoint that the client has requested
	ended     bool                      // no more listeners are accepted
}

// accept serves or refuses a channel that the client has opened.
func (c *connection) accept(ctx context.Context, offered ssh.NewChannel) {
	serve := map[string]func(context.Context, ssh.NewChannel){"session": c.serveSession, "direct-tcpip": c.serveDirect}[offered.ChannelType()]
	if serve == nil {
		reject(offered, ssh.UnknownChannelType, fmt.Sprintf("channels of type %.40q are not supported", offered.ChannelType()))
		return
	}
	if !c.addChannel() {
		reject(offered, ssh.ResourceShortage, fmt.Sprintf("the connection already has %d channels, the maximum", maxChannels))
		return
	}
	c.work.Go(func() {
		defer c.removeChannel()
		serve(ctx, offered)
	})
}

// reject refuses a channel.
func reject(offered ssh.NewChannel, reason ssh.RejectionReason, text string) {
	_ = offered.Reject(reason, printable(text)) // an error means that the connection has ended
}

// addChannel counts a new channel. It returns false if the connection has reached its limit.
func (c *connection) addChannel() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.channels >= maxChannels {
		return false
	}
	c.channels++
	return true
}

func (c *connection) removeChannel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.channels--
}

// serveRequests handles the connection-level requests in order.
func (c *connection) serveRequests(ctx context.Context, requests <-chan *ssh.Request) {
	for r := range requests {
		ok, answer := false, []byte(nil)
		switch r.Type {
		case "tcpip-forward":
			ok, answer = c.listen(ctx, r.Payload)
		case "cancel-tcpip-forward":
			ok = c.cancelListener(r.Payload)
		case "keepalive@openssh.com":
			ok = true
		}
		if r.WantReply {
			_ = r.Reply(ok, answer) // an error means that the connection has ended
		}
	}
}

// keepAlive closes the connection when the client stops replying.
func (c *connection) keepAlive(ctx context.Context) {
	pause := time.NewTicker(c.config.KeepAlive)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		gone := time.AfterFunc(3*c.config.KeepAlive, func() {
			c.config.Logger.Debug("an SSH client does not answer", "from", c.conn.RemoteAddr().String())
			_ = c.conn.Close()
		})
		_, _, err := c.conn.SendRequest("keepalive@openssh.com", true, nil)
		gone.Stop()
		if err != nil {
			return
		}
	}
}

// sayFarewell waits briefly until the sessions have shown the client why the connection ends.
func (c *connection) sayFarewell() {
	for end := time.Now().Add(c.config.Farewell); c.running.Load() > 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
}
