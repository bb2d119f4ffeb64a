package gateway

import (
	"log/slog"
	"sync"

	"go.temporal.io/sdk/client"

	"switchyard/activities/library"
	"switchyard/activities/schedules"
	"switchyard/activities/signing"
	"switchyard/activities/store"
	"switchyard/gateway/audit"
	"switchyard/gateway/edge"
	"switchyard/gateway/runevents"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	"switchyard/gateway/sse"
	"switchyard/gateway/sshkeys"
	"switchyard/gateway/tunnel"
	"switchyard/gateway/web/live"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// Gateway implements RunService and holds what the other services share. Its methods may be called concurrently.
type Gateway struct {
	config   Config
	client   client.Client
	store    *store.Store
	nodes    Nodes
	library  *library.Library
	times    *schedules.Schedules
	log      *slog.Logger
	reader   *runview.Reader
	pollers  *runview.Pollers
	index    *runindex.Index
	events   *runevents.Reader
	updates  keyedLimiter
	signer   *signing.Signer
	keys     *sshkeys.Registry
	recorder *audit.Recorder
	bounds   *edge.Bounds
	sse      *sse.Handler
	tunnel   *tunnel.Hub
	views    *live.Feeds

	stop     sync.Once
	stopping chan struct{}
}

var _ switchyardv1connect.RunServiceHandler = (*Gateway)(nil)

// New returns a gateway. The caller must Close it.
func New(config Config) (*Gateway, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, err
	}
	read := runview.NewReader(config.Client, config.Namespace, config.Store, config.Logger)
	index := runindex.New(config.Client, read, config.Now)
	g := &Gateway{
		config:   config,
		client:   config.Client,
		store:    config.Store,
		nodes:    config.Nodes,
		library:  library.New(config.Client, config.Namespace),
		times:    schedules.New(config.Client, config.Namespace),
		log:      config.Logger,
		reader:   read,
		pollers:  runview.NewPollers(read, config.PollInterval, config.Logger),
		index:    index,
		events:   runevents.New(read, index, config.Store, config.Logger),
		recorder: audit.NewRecorder(config.Store, config.Now, config.Logger),
		signer:   signing.New(config.Store, config.Now),
		keys:     sshkeys.NewRegistry(config.Store, config.Now),
		bounds:   edge.NewBounds(config.Limits, maxBlobMessageBytes),
		views:    live.NewFeeds(),
		stopping: make(chan struct{}),
	}
	g.library.Locked = config.Authenticator != nil
	g.sse = sse.New(sse.Config{
		Index: index, Reader: read, Pollers: g.pollers, Events: g.events, Logs: g.sendLogs, Bounds: g.bounds, Log: g.log,
		Stopping: g.stopping, KeepAlive: config.StreamKeepAlive, WriteTimeout: config.StreamWriteTimeout,
	})
	g.tunnel = tunnel.New(tunnel.Config{
		Client: config.Client, Index: index, Reader: read, Store: config.Store, Signer: g.signer, Recorder: g.recorder,
		Observer: config.Observer, PeerTLS: config.PeerTLS, Now: config.Now, Log: config.Logger,
	})
	g.tunnel.SetURL(config.PeerURL)
	return g, nil
}

// Sessions returns the hub that holds the links of nodes and opens sessions.
func (g *Gateway) Sessions() *tunnel.Hub { return g.tunnel }

// Close ends all open streams with the code Unavailable and waits until no goroutine of the gateway runs. A second Close
// is a no-op.
func (g *Gateway) Close() {
	g.stop.Do(func() { close(g.stopping) })
	g.tunnel.Close()
	g.views.Close()
	g.sse.Close()
	g.pollers.Close()
	g.recorder.Close()
}
