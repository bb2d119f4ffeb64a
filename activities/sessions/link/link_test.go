package link

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"switchyard/activities/gatewayclient"
	"switchyard/activities/sessions/ticket"
	"switchyard/activities/sessions/wire"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// gateway is a server that accepts links.
type gateway struct {
	*httptest.Server
	key      []byte
	sessions chan *wire.Session
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{key: ticket.NewKey(), sessions: make(chan *wire.Session, 10)}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Path || r.Header.Get(NodeHeader) != "n1" || r.Header.Get(IncarnationHeader) != "i1" || r.Header.Get("Authorization") != "Bearer t0" {
			t.Error(r.URL, r.Header)
		}
		conn, err := wire.Accept(w, r)
		if err != nil {
			return // the node has closed its link
		}
		_ = wire.WriteMessage(conn, &v1.LinkHello{TicketKey: g.key, Gateway: "g1"})
		s := wire.NewSession(conn, false)
		g.sessions <- s
		<-s.Done()
	}))
	t.Cleanup(g.Close)
	return g
}

// dial returns the connection of a node to gateways.
func dial(t *testing.T, urls string) *gatewayclient.Conn {
	t.Helper()
	list, err := gatewayclient.Parse(urls)
	if err != nil {
		t.Fatal(err)
	}
	return gatewayclient.New(list, gatewayclient.Options{Token: func() string { return "t0" }})
}

func (g *gateway) start(t *testing.T, serve func(ctx context.Context, conn wire.Conn, h *v1.SessionHeader)) *Link {
	t.Helper()
	l := Start(Options{Gateways: dial(t, g.URL), Node: "n1", Incarnation: "i1", Serve: serve})
	t.Cleanup(l.Close)
	return l
}

func (g *gateway) session(t *testing.T) *wire.Session {
	t.Helper()
	select {
	case s := <-g.sessions:
		return s
	case <-time.After(time.Minute):
		t.Fatal("the node does not connect")
		return nil
	}
}

func (g *gateway) open(t *testing.T, s *wire.Session, h *v1.SessionHeader) (wire.Conn, error) {
	t.Helper()
	conn, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = wire.Request(t.Context(), conn, h)
	return conn, err
}

func (g *gateway) signed(t *testing.T, node string) *v1.SessionHeader {
	t.Helper()
	h := &v1.SessionHeader{Kind: "connect", Node: node, Task: "build"}
	if err := ticket.Sign(g.key, h, time.Now()); err != nil {
		t.Fatal(err)
	}
	return h
}

func echo(_ context.Context, conn wire.Conn, h *v1.SessionHeader) {
	_ = wire.WriteMessage(conn, &v1.SessionReply{Task: h.GetTask()})
	_, _ = io.Copy(conn, conn)
}

func TestLinkServesStreamsWithTickets(t *testing.T) {
	g := newGateway(t)
	l := g.start(t, echo)
	s := g.session(t)
	for !l.Connected() {
		time.Sleep(time.Millisecond)
	}
	h := g.signed(t, "n1")
	conn, err := g.open(t, s, h)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "hello")
	_ = conn.CloseWrite()
	if got, err := io.ReadAll(conn); string(got) != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_ = conn.Close()
	for says, h := range map[string]*v1.SessionHeader{"used before": h, "no ticket": {Kind: "exec", Node: "n1"}, "for node n2": g.signed(t, "n2")} {
		if _, err := g.open(t, s, h); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// TestLostLinkIsDialedAgain checks that a lost link is redialed and that the context of a stream in
// progress ends.
func TestLostLinkIsDialedAgain(t *testing.T) {
	g := newGateway(t)
	ended := make(chan struct{}, 10)
	g.start(t, func(ctx context.Context, conn wire.Conn, _ *v1.SessionHeader) {
		_ = wire.WriteMessage(conn, &v1.SessionReply{})
		<-ctx.Done()
		ended <- struct{}{}
	})
	for range 3 {
		s := g.session(t)
		if _, err := g.open(t, s, g.signed(t, "n1")); err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
		<-ended
	}
}

func TestCloseTellsStreams(t *testing.T) {
	g := newGateway(t)
	l := g.start(t, func(ctx context.Context, conn wire.Conn, h *v1.SessionHeader) { echo(ctx, conn, h) })
	s := g.session(t)
	conn, err := g.open(t, s, g.signed(t, "n1"))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := io.ReadAll(conn); err == nil || !strings.Contains(err.Error(), "the worker of node n1 is shutting down") {
		t.Error(err)
	}
	l.Close()
}

// TestLinkFollowsTheNodeToAnotherGateway covers a list whose first gateway does not answer, and the loss of the one in use.
func TestLinkFollowsTheNodeToAnotherGateway(t *testing.T) {
	a, b := newGateway(t), newGateway(t)
	conn := dial(t, "http://127.0.0.1:1,"+a.URL+","+b.URL)
	l := Start(Options{Gateways: conn, Node: "n1", Incarnation: "i1", Serve: echo})
	defer l.Close()
	first := a.session(t)
	// A silent gateway keeps its connections, and the node leaves it with another request.
	_ = conn.Each(t.Context(), func(_ context.Context, gateway string) (bool, error) {
		return gateway == b.URL, errors.New("from " + gateway)
	})
	<-first.Done()
	_ = b.session(t).Close()
	b.session(t)
}
