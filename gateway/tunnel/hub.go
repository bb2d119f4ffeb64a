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
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// Endpoints of a gateway.
const (
	// LinksPath serves nodes, SessionsPath serves clients, and PeersPath serves other gateways.
	LinksPath, SessionsPath, PeersPath = "/v1/links", "/v1/sessions", "/v1/peers"
)

// shutdownReason is the reason that sessions receive when the gateway closes.
const shutdownReason = "the gateway is shutting down; running tasks continue"

// Nodes reads the node registry. Its method may be called concurrently.
type Nodes interface {
	// Get returns a node with its state.
	Get(ctx context.Context, name string) (*v1.Node, error)
}

// Config holds the dependencies and limits of a Hub.
type Config struct {
	Client   client.Client
	Nodes    Nodes
	Index    *runindex.Index
	Reader   *runview.Reader
	Store    *store.Store
	Signer   *signing.Signer
	Recorder *audit.Recorder
	// Observer makes the hub refuse all sessions and links.
	Observer bool
	// ApproveUserRuns makes the hub refuse what a user could change by a session in a task of a run that was approved.
	ApproveUserRuns bool
	// PeerTLS is the TLS config for gateways with an https URL; nil means the certificate authorities of the system.
	PeerTLS *tls.Config
	Now     func() time.Time
	Log     *slog.Logger
	// MaxSessions bounds the number of open client connections. Default: 8192.
	MaxSessions int
	// MaxOfCaller bounds the number of open sessions per caller name. Default: 1024.
	MaxOfCaller int
}

// Hub holds the links of nodes and the sessions of clients. It is safe for concurrent use.
type Hub struct {
	config Config
	name   string // random name of this gateway

	stopping chan struct{}
	open     sync.WaitGroup // connections
	callers  callers

	mu      sync.Mutex
	stopped bool
	url     string // the URL for other gateways
	links   map[string]*link
	// locations has a mutex for each node that was connected, which is held while the location of the node is stored.
	locations map[string]*sync.Mutex
	peers     map[string]*peer
	clients   int
}

// New returns a hub without links. Close stops it.
func New(config Config) *Hub {
	if config.MaxSessions == 0 {
		config.MaxSessions = 8192
	}
	if config.MaxOfCaller == 0 {
		config.MaxOfCaller = 1024
	}
	return &Hub{
		config: config, name: rand.Text(), stopping: make(chan struct{}),
		links: map[string]*link{}, locations: map[string]*sync.Mutex{}, peers: map[string]*peer{},
	}
}

// SetURL sets the URL at which other gateways reach this one. It must be called before nodes connect.
func (h *Hub) SetURL(url string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.url = url
}

// Close ends all sessions and links with a reason and waits for them. A second Close is a no-op.
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

// enter counts a connection until leave is called. It returns an error while the hub closes.
func (h *Hub) enter() (leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return nil, errStopping()
	}
	h.open.Add(1)
	return h.open.Done, nil
}

// enterClient counts a client connection until leave is called. It returns an error if MaxSessions is reached.
func (h *Hub) enterClient() (leave func(), err error) {
	done, err := h.enter()
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clients >= h.config.MaxSessions {
		done()
		return nil, exhausted("the gateway has reached its limit of %d session connections; try again later or use another gateway of this deployment", h.clients)
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
	return denied("this gateway is an observer and opens no sessions; use another one, or start it with --role auto")
}

// endWith waits until a session has ended, ctx is cancelled or the hub closes. In the last two cases it closes the session
// with the reason.
func (h *Hub) endWith(ctx context.Context, session *wire.Session) {
	select {
	case <-session.Done():
	case <-h.stopping:
		_ = session.CloseWith(shutdownReason)
	case <-ctx.Done():
		_ = session.CloseWith(context.Cause(ctx).Error())
	}
}

// accept upgrades a request to a session.
func accept(w http.ResponseWriter, r *http.Request) (*wire.Session, error) {
	conn, err := wire.Accept(w, r)
	if err != nil {
		return nil, err
	}
	return wire.NewSession(conn, false), nil
}
