package sshdoor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/executor"
	"switchyard/activities/sessions/sshserver"
	"switchyard/gateway/auth"
)

// Config holds the dependencies and limits of a Door.
type Config struct {
	// HostKey identifies the gateway to clients.
	HostKey ssh.Signer
	Runs    Runs
	Keys    Keys
	// Locked is set if authentication is on.
	Locked bool
	// Enter returns the inside of a task for a principal at an address. An empty task means the only running one.
	Enter func(p *auth.Principal, from net.Addr, run, task string) executor.Inside
	// OnRefused is called for each refused key with the user name that the client sent. Optional.
	OnRefused func(from net.Addr, user string, key ssh.PublicKey, reason error)
	// OnLogin is called for each client before it is let in. Optional.
	OnLogin func(ctx context.Context, p *auth.Principal, from net.Addr, run, task string)
	// Logger receives messages for operators. Default: discarded.
	Logger *slog.Logger
	// LoginTimeout bounds how long a client may take to log in. Default: 30 s.
	LoginTimeout time.Duration
	// RefusalTime is how long each refusal takes. Default: 300 ms.
	RefusalTime time.Duration
	// Recheck is the interval at which logged-in connections are checked again. Default: 3 s.
	Recheck time.Duration
	// Farewell is how long programs and clients get to finish before a connection that is ending is closed. Default: that of
	// package sshserver.
	Farewell time.Duration
	// Now is the clock of the back-off. Default: time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.LoginTimeout = cmp.Or(c.LoginTimeout, 30*time.Second)
	c.RefusalTime = cmp.Or(c.RefusalTime, 300*time.Millisecond)
	c.Recheck = cmp.Or(c.Recheck, 3*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// keepAlive detects clients whose network has failed. Idle clients stay connected.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 15 * time.Second, Count: 4}

// Door is a listening SSH server. Close stops it.
type Door struct {
	config   Config
	listener net.Listener
	backoff  backoff
	startups startups

	ctx  context.Context // cancelled by Close
	end  context.CancelCauseFunc
	work sync.WaitGroup
}

// errClosing is the reason that connections see when the door closes.
var errClosing = errors.New("the gateway is shutting down")

// Listen opens a door at an address, host:port. Port 0 selects a free port and an empty host the loopback address.
func Listen(ctx context.Context, address string, cfg Config) (*Door, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen for SSH on %s: %w", address, err)
	}
	listen := net.ListenConfig{KeepAliveConfig: keepAlive}
	listener, err := listen.Listen(ctx, "tcp", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the SSH address %s is already in use; choose another with --ssh-address or stop the process that listens there", address)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for SSH on %s: %w", address, err)
	}
	d := &Door{config: cfg.withDefaults(), listener: listener}
	d.ctx, d.end = context.WithCancelCause(context.Background())
	d.work.Go(d.accept)
	return d, nil
}

// Address returns the address that the door listens on, host:port.
func (d *Door) Address() string { return d.listener.Addr().String() }

// Close ends all connections and returns when all their goroutines have ended. A second Close is a no-op.
func (d *Door) Close() {
	d.end(errClosing)
	_ = d.listener.Close() // fails only if already closed
	d.work.Wait()
}

// accept accepts connections until the door closes.
func (d *Door) accept() {
	for {
		conn, err := d.listener.Accept()
		if d.ctx.Err() != nil {
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		if err != nil { // such as too many open files
			d.config.Logger.Warn("cannot accept an SSH connection", "error", err)
			select {
			case <-d.ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		network := networkOf(conn.RemoteAddr())
		if !d.startups.connect(network) {
			turnAway(conn)
			continue
		}
		d.work.Go(func() {
			defer d.startups.disconnect()
			defer conn.Close()
			d.serve(conn, network)
		})
	}
}

// turnAway closes a connection with a line that clients show with -v.
func turnAway(conn net.Conn) {
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // the line fits the send buffer of a fresh connection
	_, _ = conn.Write([]byte("Not allowed at this time\r\n"))
	_ = conn.Close()
}

// serve serves a connection until it ends.
func (d *Door) serve(conn net.Conn, network string) {
	l := &login{door: d, conn: conn}
	opened, channels, requests, err := l.handshake()
	d.startups.started(network)
	l.settle()
	if err != nil {
		d.config.Logger.Debug("SSH login failed", "from", conn.RemoteAddr().String(), "error", err)
		return
	}
	defer opened.Close()
	ctx, cancel := context.WithCancelCause(d.ctx)
	var watch sync.WaitGroup
	watch.Go(func() { d.watch(ctx, cancel, l.grant) })
	sshserver.Serve(ctx, opened, channels, requests, sshserver.Config{
		Inside: d.enter(l.grant, conn.RemoteAddr()), Farewell: d.config.Farewell, Logger: d.config.Logger,
	})
	cancel(context.Canceled)
	watch.Wait()
}

// enter returns the inside that a grant opens.
func (d *Door) enter(g *grant, from net.Addr) executor.Inside {
	if len(g.choices) > 0 {
		return ambiguous{g}
	}
	return d.config.Enter(g.principal, from, g.run.ID, g.task)
}

// watch ends a connection once its grant is no longer valid.
func (d *Door) watch(ctx context.Context, end context.CancelCauseFunc, g *grant) {
	pause := time.NewTicker(d.config.Recheck)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		if err := d.revalidate(ctx, g); err != nil && ctx.Err() == nil {
			end(err)
			return
		}
	}
}
