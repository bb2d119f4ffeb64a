package tunnel

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	nodelink "switchyard/activities/sessions/link"
	"switchyard/activities/sessions/ticket"
	"switchyard/activities/sessions/wire"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/auth"
	"switchyard/gateway/nodeaccess"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// helloTimeout bounds sending the greeting to a node.
	helloTimeout = 20 * time.Second
	// storeTimeout bounds one attempt to store the location of a node; storePause is the pause after a failed attempt.
	storeTimeout, storePause = 10 * time.Second, time.Second
)

// link is the connection of a node to this gateway.
type link struct {
	node, id string
	key      []byte // signs the tickets of this link
	session  *wire.Session
}

// Links serves connections of nodes.
func (h *Hub) Links() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		node, err := h.admitNode(r)
		if err != nil {
			auth.Refuse(w, r, err)
			return
		}
		leave, err := h.enter()
		if err != nil {
			auth.Refuse(w, r, err)
			return
		}
		defer leave()
		h.serveNode(w, r, node)
	})
}

// admitNode returns the name of the node that a request connects, if its token allows that.
func (h *Hub) admitNode(r *http.Request) (string, error) {
	if err := h.refuseObserver(); err != nil {
		return "", err
	}
	owner, err := nodeaccess.Node(r.Context())
	if err != nil {
		return "", err
	}
	node := r.Header.Get(nodelink.NodeHeader)
	switch {
	case storekey.CheckRun(node) != nil:
		return "", rpcerror.Invalid("the header %s names no node", nodelink.NodeHeader)
	case owner != "" && owner != node:
		return "", denied("the token belongs to node %s, but node %s is connecting", owner, node)
	}
	return node, nil
}

// Attach connects a node in this process and returns the node's end of the connection.
func (h *Hub) Attach(node string) (net.Conn, error) {
	if err := h.refuseObserver(); err != nil {
		return nil, err
	}
	leave, err := h.enter()
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	go func() { // ends with the connection or the hub
		defer leave()
		h.serveLink(context.Background(), far, node, "this process")
	}()
	return near, nil
}

// serveNode upgrades a request and serves the link of its node.
func (h *Hub) serveNode(w http.ResponseWriter, r *http.Request, node string) {
	conn, err := wire.Accept(w, r)
	if err == nil {
		h.serveLink(r.Context(), conn, node, r.RemoteAddr)
	}
}

// serveLink serves the link of a node until the link ends or ctx is cancelled.
func (h *Hub) serveLink(ctx context.Context, conn net.Conn, node, from string) {
	l := &link{node: node, id: rand.Text(), key: ticket.NewKey()}
	_ = conn.SetWriteDeadline(time.Now().Add(helloTimeout))
	if err := wire.WriteMessage(conn, &v1.LinkHello{TicketKey: l.key, Gateway: h.name}); err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetWriteDeadline(time.Time{})
	l.session = wire.NewSession(conn, false)
	defer func() { _ = l.session.Close() }()
	l.session.DescribeLoss("the link to node " + node + " was lost; running tasks continue")
	go refuseStreams(l.session)
	h.add(l)
	h.config.Log.Info("a node has connected for sessions", "node", node, "from", from)
	storing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stored := make(chan struct{})
	go func() {
		defer close(stored)
		h.storeLocation(storing, l)
	}()
	h.endWith(ctx, l.session)
	cancel()
	<-stored
	h.remove(l)
	h.config.Log.Info("a node is no longer connected for sessions", "node", node)
}

// refuseStreams aborts streams that a node opens, because only the gateway opens streams.
func refuseStreams(s *wire.Session) {
	for {
		conn, err := s.Accept()
		if err != nil {
			return
		}
		wire.Abort(conn, "")
	}
}

// add registers the link of a node. It closes an older link of the node whose loss has gone unnoticed.
func (h *Hub) add(l *link) {
	h.mu.Lock()
	older := h.links[l.node]
	h.links[l.node] = l
	h.mu.Unlock()
	if older != nil {
		go func() { _ = older.session.CloseWith("node " + l.node + " has connected again") }()
	}
}

// locationOf returns the mutex for the stored location of a node.
func (h *Hub) locationOf(node string) *sync.Mutex {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.locations[node]
	if m == nil {
		m = &sync.Mutex{}
		h.locations[node] = m
	}
	return m
}

// remove unregisters an ended link, here and in the store.
func (h *Hub) remove(l *link) {
	location := h.locationOf(l.node)
	location.Lock() // a newer link of the node stores its location afterwards
	defer location.Unlock()
	h.mu.Lock()
	current := h.links[l.node] == l
	if current {
		delete(h.links, l.node)
	}
	h.mu.Unlock()
	if !current {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	known := &v1.LinkLocation{}
	if err := h.config.Store.GetMessage(ctx, storekey.Link(l.node), known); err != nil || known.GetLink() != l.id {
		return // the node is connected elsewhere
	}
	gone := &v1.LinkLocation{ConnectedAt: timestamppb.New(h.config.Now())}
	if err := h.config.Store.PutMessage(ctx, storekey.Link(l.node), gone); err != nil {
		h.config.Log.Warn("cannot remove the location of a node from the store", "node", l.node, "error", err)
	}
}

// storeLocation publishes the location of a node for other gateways. It retries until ctx is cancelled.
func (h *Hub) storeLocation(ctx context.Context, l *link) {
	h.mu.Lock()
	at := &v1.LinkLocation{Gateway: h.name, Url: h.url, Link: l.id, ConnectedAt: timestamppb.New(h.config.Now())}
	h.mu.Unlock()
	for {
		location := h.locationOf(l.node)
		location.Lock()
		try, cancel := context.WithTimeout(ctx, storeTimeout)
		err := h.config.Store.PutMessage(try, storekey.Link(l.node), at)
		cancel()
		location.Unlock()
		if err == nil || ctx.Err() != nil {
			return
		}
		h.config.Log.Warn("cannot publish the location of a node to other gateways", "node", l.node, "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(storePause):
		}
	}
}

// linkOf returns the link of a node that is connected to this gateway, or nil if it is not.
func (h *Hub) linkOf(node string) *link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.links[node]
}
