package gateway

import (
	"log/slog"
	"sync"

	"go.temporal.io/sdk/client"

	"switchyard/activities/library"
	"switchyard/activities/store"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// Gateway answers the calls of RunService, and keeps what those of the other services need. Its methods may be called from
// several goroutines at once.
type Gateway struct {
	config  Config
	client  client.Client
	store   *store.Store
	nodes   Nodes
	library *library.Library
	log     *slog.Logger
	reader  *reader
	pollers *pollers
	recent  *recentRuns
	updates turns
	bounds  *bounds

	stop     sync.Once
	stopping chan struct{}
}

var _ switchyardv1connect.RunServiceHandler = (*Gateway)(nil)

// New makes a gateway. Close ends it.
func New(config Config) (*Gateway, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, err
	}
	read := &reader{client: config.Client, namespace: config.Namespace, store: config.Store, log: config.Logger}
	return &Gateway{
		config:   config,
		client:   config.Client,
		store:    config.Store,
		nodes:    config.Nodes,
		library:  library.New(config.Client),
		log:      config.Logger,
		reader:   read,
		pollers:  newPollers(read, config.PollInterval, config.Logger),
		recent:   &recentRuns{},
		bounds:   newBounds(config.Limits),
		stopping: make(chan struct{}),
	}, nil
}

// Close ends the streams that are open, with the code Unavailable, and waits
// until nothing of the gateway runs any more. A second Close does nothing.
func (g *Gateway) Close() {
	g.stop.Do(func() { close(g.stopping) })
	g.pollers.close()
}
