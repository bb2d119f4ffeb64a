package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"switchyard/activities/gatewayclient"
	"switchyard/activities/sessions/ticket"
	"switchyard/activities/sessions/wire"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// Path is the HTTP path at which a gateway accepts links of nodes.
	Path = "/v1/links"
	// NodeHeader and IncarnationHeader identify the node that connects.
	NodeHeader, IncarnationHeader = "Switchyard-Node", "Switchyard-Incarnation"

	// firstPause is the pause before redialing after a link that lasted, and longestPause bounds the back-off. Jitter changes
	// each pause by up to half its length. A node is back before the 10 s have passed after which its gateway gives up a session
	// with it.
	firstPause, longestPause = 250 * time.Millisecond, 6 * time.Second
	// lasting is how long a link must last to reset the back-off.
	lasting = time.Minute
	// helloTimeout bounds the wait for the gateway's LinkHello.
	helloTimeout = 20 * time.Second
	// closeTimeout bounds how long Close waits for streams to end.
	closeTimeout = 10 * time.Second
)

// Options configures a Link.
type Options struct {
	// Gateways is the connection of the node to the gateways of its fleet. The link connects to the gateway in use.
	Gateways *gatewayclient.Conn
	// Dial connects to a gateway in the same process, instead of Gateways, which applies if Dial is nil. It returns ErrNotYet
	// while the gateway is not ready.
	Dial func(ctx context.Context) (net.Conn, error)
	// Node is the name of the node. Incarnation distinguishes its workers.
	Node, Incarnation string
	// Serve serves a stream with a valid ticket: it replies to the header, and closes the stream. It must return soon after ctx
	// ends, which happens when the link is lost.
	Serve func(ctx context.Context, conn wire.Conn, h *v1.SessionHeader)
	// Logger receives messages for operators. The default discards them.
	Logger *slog.Logger
}

// Link is a node's connection to a gateway. It reconnects whenever the connection is lost.
type Link struct {
	o       Options
	cancel  context.CancelFunc
	stopped chan struct{}
	streams sync.WaitGroup

	mu        sync.Mutex
	connected bool
	session   *wire.Session
}

// Start connects a node to its gateway in the background. The caller must call Close.
func Start(o Options) *Link {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Link{o: o, cancel: cancel, stopped: make(chan struct{})}
	go func() {
		defer close(l.stopped)
		l.run(ctx)
	}()
	return l
}

// Close ends the link and its streams, and informs their other sides that the node is shutting down. It waits up to closeTimeout
// for the running Serve calls. A second Close is a no-op.
func (l *Link) Close() {
	l.mu.Lock()
	session := l.session
	l.mu.Unlock()
	if session != nil {
		_ = session.CloseWith("the worker of node " + l.o.Node + " is shutting down")
	}
	l.cancel()
	<-l.stopped
	served := make(chan struct{})
	go func() {
		defer close(served)
		l.streams.Wait()
	}()
	select {
	case <-served:
	case <-time.After(closeTimeout):
		l.o.Logger.Warn("sessions have not ended with the link")
	}
}

// Connected reports whether the node is connected to the gateway now.
func (l *Link) Connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.connected
}

// run keeps the link connected until ctx ends.
func (l *Link) run(ctx context.Context) {
	pause, told := firstPause, ""
	for {
		began := time.Now()
		err := l.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > lasting {
			pause, told = firstPause, ""
		}
		switch {
		case err == nil || errors.Is(err, ErrNotYet):
		case errors.Is(err, wire.ErrLost): // there was a link; reconnect
			l.o.Logger.Info("the node has lost its connection to the gateway for sessions", "error", err)
		case err.Error() != told: // log each error once, not at every attempt
			told = err.Error()
			l.o.Logger.Warn("the node is not connected to the gateway for sessions", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, longestPause)
	}
}

// ErrNotYet means that the gateway of the process is not ready yet.
var ErrNotYet = errors.New("the gateway is not ready yet")

// errMoved means that the node uses another gateway.
var errMoved = errors.New("the node uses another gateway")

// dial connects to a gateway. moved is closed when the node uses another gateway; it is nil for the gateway of the process.
func (l *Link) dial(ctx context.Context) (conn net.Conn, moved <-chan struct{}, err error) {
	if l.o.Dial != nil {
		conn, err = l.o.Dial(ctx)
		return conn, nil, err
	}
	var at string
	err = l.o.Gateways.Each(ctx, func(ctx context.Context, gateway string) (answered bool, err error) {
		at = gateway
		conn, err = wire.Dial(ctx, wire.DialOptions{
			URL: gateway, Path: Path, Token: l.o.Gateways.Token, TLS: l.o.Gateways.TLS(),
			Header: http.Header{NodeHeader: {l.o.Node}, IncarnationHeader: {l.o.Incarnation}},
		})
		_, refused := errors.AsType[*wire.RefusedError](err)
		return refused, err
	})
	if err != nil {
		return nil, nil, err
	}
	used, moved := l.o.Gateways.InUse()
	if used != at {
		_ = conn.Close()
		return nil, nil, errMoved
	}
	return conn, moved, nil
}

// connect dials the gateway and serves streams until the link is lost.
func (l *Link) connect(ctx context.Context) error {
	conn, moved, err := l.dial(ctx)
	if err != nil {
		return err
	}
	hello, err := readHello(ctx, conn)
	if err != nil {
		_ = conn.Close()
		return err
	}
	tickets, err := ticket.NewChecker(hello.GetTicketKey(), time.Now)
	if err != nil {
		_ = conn.Close()
		return err
	}
	session := wire.NewSession(conn, true)
	session.DescribeLoss("the link of node " + l.o.Node + " to the gateway was lost")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-moved:
		case <-ctx.Done():
		}
		_ = session.Close()
	}()
	defer func() { _ = session.Close() }()
	l.setSession(session)
	defer l.setSession(nil)
	l.o.Logger.Info("the node is connected to the gateway for sessions", "gateway", hello.GetGateway())
	return l.accept(ctx, session, tickets)
}

// readHello reads the gateway's first message.
func readHello(ctx context.Context, conn net.Conn) (*v1.LinkHello, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_ = conn.SetReadDeadline(time.Now().Add(helloTimeout))
	hello := &v1.LinkHello{}
	if err := wire.ReadMessage(conn, hello); err != nil {
		return nil, fmt.Errorf("the gateway has sent no hello: %w", err)
	}
	return hello, conn.SetReadDeadline(time.Time{})
}

func (l *Link) setSession(s *wire.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session, l.connected = s, s != nil
}

// accept serves streams until the session ends.
func (l *Link) accept(ctx context.Context, session *wire.Session, tickets *ticket.Checker) error {
	for {
		conn, err := session.Accept()
		if err != nil {
			return err
		}
		l.streams.Go(func() {
			defer func() { _ = conn.Close() }()
			l.serve(ctx, conn, tickets)
		})
	}
}

// serve checks the ticket of one stream and serves the stream.
func (l *Link) serve(ctx context.Context, conn wire.Conn, tickets *ticket.Checker) {
	h, err := wire.ReadHeader(conn)
	if err != nil {
		return
	}
	if err = tickets.Check(h); err == nil && h.GetNode() != l.o.Node {
		err = fmt.Errorf("the stream is for node %s, but this is node %s", h.GetNode(), l.o.Node)
	}
	if err != nil {
		l.o.Logger.Warn("a session was refused", "run", h.GetRunId(), "task", h.GetTask(), "error", err)
		wire.Refuse(conn, "permission_denied", err.Error())
		return
	}
	l.o.Serve(ctx, conn, h)
}
