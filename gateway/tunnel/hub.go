package tunnel

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/activities/sessions/wire"
	"switchyard/activities/signing"
	"switchyard/activities/store"
	"switchyard/gateway/audit"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
)

// Doors of a gateway.
const (
	// LinksPath is for nodes, SessionsPath for clients, and PeersPath for other gateways.
	LinksPath, SessionsPath, PeersPath = "/v1/links", "/v1/sessions", "/v1/peers"
)

// shutdownReason is what sessions are told when the gateway closes.
const shutdownReason = "the gateway is shutting down; what runs continues"

// Config is what a Hub is made of.
type Config struct {
	Client   client.Client
	Index    *runindex.Index
	Reader   *runview.Reader
	Store    *store.Store
	Signer   *signing.Signer
	Recorder *audit.Recorder
	// Observer refuses all sessions and links.
	Observer bool
	// PeerTLS is how gateways with an https URL are reached; nil: with the authorities of the system.
	PeerTLS *tls.Config
	Now     func() time.Time
	Log     *slog.Logger
	// MaxSessions bounds the connections of clients that are open at once. Default: 8192.
	MaxSessions int
	// MaxOfCaller bounds the sessions that are open at once under one name. Default: 1024.
	MaxOfCaller int
}

// Hub has the links of nodes and the sessions of clients. Its methods may be called from several goroutines at once.
type Hub struct {
	config Config
	name   string // distinguishes this gateway from others

	stopping chan struct{}
	open     sync.WaitGroup // connections
	callers  callers

	mu      sync.Mutex
	stopped bool
	url     string // for other gateways
	links   map[string]*link
	peers   map[string]*peer
	clients int
}

// New returns a hub without links. Close ends it.
func New(config Config) *Hub {
	if config.MaxSessions == 0 {
		config.MaxSessions = 8192
	}
	if config.MaxOfCaller == 0 {
		config.MaxOfCaller = 1024
	}
	return &Hub{config: config, name: rand.Text(), stopping: make(chan struct{}), links: map[string]*link{}, peers: map[string]*peer{}}
}

// SetURL sets the URL under which other gateways reach this one. Call it before nodes connect.
func (h *Hub) SetURL(url string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.url = url
}

// Close tells sessions that the gateway shuts down, ends them and the links, and waits for them. A second Close does nothing.
func (h *Hub) Close() {
	h.mu.Lock()
	if !h.stopped {
		h.stopped = true
		close(h.stopping)
	}
	h.mu.Unlock()
	h.open.Wait()
	h.closePeers()
}

// enter counts a connection until leave is called, and returns an error while the hub closes.
func (h *Hub) enter() (leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return nil, errStopping()
	}
	h.open.Add(1)
	return h.open.Done, nil
}

// enterClient counts a connection of a client until leave is called.
func (h *Hub) enterClient() (leave func(), err error) {
	done, err := h.enter()
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clients >= h.config.MaxSessions {
		done()
		return nil, exhausted("the gateway has %d connections for sessions open, as many as it takes; try again later, or at another gateway of this deployment", h.clients)
	}
	h.clients++
	return func() {
		h.mu.Lock()
		h.clients--
		h.mu.Unlock()
		done()
	}, nil
}

// refuseObserver returns an error if the gateway is an observer.
func (h *Hub) refuseObserver() error {
	if !h.config.Observer {
		return nil
	}
	return rpcerror.WrongState("this gateway is an observer and opens no sessions; use another one, or start it with --role auto")
}

// endWith returns once a session has ended, a request's caller may no longer be served, or the hub closes. It ends the session
// then, with the reason.
func (h *Hub) endWith(ctx context.Context, session *wire.Session) {
	select {
	case <-session.Done():
	case <-h.stopping:
		_ = session.CloseWith(shutdownReason)
	case <-ctx.Done():
		_ = session.CloseWith(context.Cause(ctx).Error())
	}
}

// accept returns the session of a request that asks for an upgrade.
func accept(w http.ResponseWriter, r *http.Request) (*wire.Session, error) {
	conn, err := wire.Accept(w, r)
	if err != nil {
		return nil, err
	}
	return wire.NewSession(conn, false), nil
}
