package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"switchyard/activities/sessions/ticket"
	"switchyard/activities/sessions/wire"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// Path is the door of a gateway for nodes.
	Path = "/v1/links"
	// NodeHeader and IncarnationHeader say which node connects.
	NodeHeader, IncarnationHeader = "Switchyard-Node", "Switchyard-Incarnation"

	// firstPause is the pause after a link that has lasted, longestPause the one after many tries. Half as much again may be added
	// to each. A node is back before its gateway, which waits for 10 s, gives up a session with it.
	firstPause, longestPause = 250 * time.Millisecond, 6 * time.Second
	// lasting is how long a link lasts until the next one is dialed without a long pause.
	lasting = time.Minute
	// helloTimeout bounds how long a gateway takes to say hello.
	helloTimeout = 20 * time.Second
	// closeTimeout bounds how long Close waits for streams.
	closeTimeout = 10 * time.Second
)

// Options are how a node is connected.
type Options struct {
	// Gateway returns the URL of the gateway, or "" while it is not known. It is called before each try.
	Gateway func() string
	// Dial connects to the gateway in place of Gateway, Token and TLS, where it is in the same process; nil: they do. ErrNotYet
	// says that it is not there yet.
	Dial func(ctx context.Context) (net.Conn, error)
	// Token returns the token of the node, or "" if there is none. A nil Token logs in nowhere.
	Token func() string
	// TLS is how a gateway with an https URL is reached; nil: with the authorities of the system.
	TLS *tls.Config
	// Node is the name of the node, Incarnation distinguishes its workers.
	Node, Incarnation string
	// Serve serves a stream whose ticket counts: it answers the header, and closes the stream. It returns soon after ctx has
	// ended, which it does with the link.
	Serve func(ctx context.Context, conn wire.Conn, h *v1.SessionHeader)
	// Logger takes what an operator should know. Default: nothing is logged.
	Logger *slog.Logger
}

// Link is a connection of a node to a gateway, which is dialed again whenever it is lost.
type Link struct {
	o       Options
	cancel  context.CancelFunc
	stopped chan struct{}
	streams sync.WaitGroup

	mu        sync.Mutex
	connected bool
	session   *wire.Session
}

// Start connects a node. It does not block. Close ends the link.
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

// Close ends the link and its streams, whose other sides are told that the node shuts down. It waits some seconds for those
// who serve them. A second Close does nothing.
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

// Connected reports whether the node is connected now.
func (l *Link) Connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.connected
}

// run dials until ctx ends.
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
		case errors.Is(err, wire.ErrLost): // there was a link, and the next one is dialed
			l.o.Logger.Info("the node has lost its connection to the gateway for sessions", "error", err)
		case err.Error() != told: // once, not with each try
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

// ErrNotYet says that there is no gateway to dial yet.
var ErrNotYet = errors.New("the gateway is not known yet")

// dial connects to the gateway.
func (l *Link) dial(ctx context.Context) (net.Conn, error) {
	if l.o.Dial != nil {
		return l.o.Dial(ctx)
	}
	location := l.o.Gateway()
	if location == "" {
		return nil, ErrNotYet
	}
	return wire.Dial(ctx, wire.DialOptions{
		URL: location, Path: Path, Token: l.o.Token, TLS: l.o.TLS,
		Header: http.Header{NodeHeader: {l.o.Node}, IncarnationHeader: {l.o.Incarnation}},
	})
}

// connect dials, and serves streams until the link is lost.
func (l *Link) connect(ctx context.Context) error {
	conn, err := l.dial(ctx)
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
	defer context.AfterFunc(ctx, func() { _ = session.Close() })()
	defer func() { _ = session.Close() }()
	l.setSession(session)
	defer l.setSession(nil)
	l.o.Logger.Info("the node is connected to the gateway for sessions", "gateway", hello.GetGateway())
	return l.accept(ctx, session, tickets)
}

// readHello reads what a gateway says first.
func readHello(ctx context.Context, conn net.Conn) (*v1.LinkHello, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_ = conn.SetReadDeadline(time.Now().Add(helloTimeout))
	hello := &v1.LinkHello{}
	if err := wire.ReadMessage(conn, hello); err != nil {
		return nil, fmt.Errorf("the gateway says no hello: %w", err)
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

// serve serves one stream.
func (l *Link) serve(ctx context.Context, conn wire.Conn, tickets *ticket.Checker) {
	h, err := wire.ReadHeader(conn)
	if err != nil {
		return
	}
	if err = tickets.Check(h); err == nil && h.GetNode() != l.o.Node {
		err = fmt.Errorf("the stream is for node %s, and this is node %s", h.GetNode(), l.o.Node)
	}
	if err != nil {
		l.o.Logger.Warn("a session was refused", "run", h.GetRunId(), "task", h.GetTask(), "error", err)
		wire.Refuse(conn, "permission_denied", err.Error())
		return
	}
	l.o.Serve(ctx, conn, h)
}
