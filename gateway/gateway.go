package gateway

import (
	"sync"

	"switchyard/activities/library"
	schedulestore "switchyard/activities/schedules"
	"switchyard/gateway/audit"
	"switchyard/gateway/blobs"
	"switchyard/gateway/edge"
	"switchyard/gateway/schedules"
	"switchyard/gateway/sse"
	"switchyard/gateway/sshkeys"
	"switchyard/gateway/tunnel"
	"switchyard/gateway/web/live"
	"switchyard/gateway/workflows"
)

// Gateway wires the services of a gateway together and serves them. Its methods may be called concurrently.
type Gateway struct {
	config Config
	shared
	runs      runService
	stored    *library.Library
	workflows workflows.Service
	schedules schedules.Service
	keys      *sshkeys.Registry
	recorder  *audit.Recorder
	bounds    *edge.Bounds
	sse       *sse.Handler
	tunnel    *tunnel.Hub
	views     *live.Feeds
	stop      sync.Once
}

// New returns a gateway. The caller must Close it.
func New(config Config) (*Gateway, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, err
	}
	stored := library.New(config.Client, config.Namespace)
	stored.Locked = config.Authenticator != nil
	timetable := schedulestore.New(config.Client, config.Namespace)
	shared := newShared(config, stored)
	g := &Gateway{
		config:    config,
		shared:    shared,
		runs:      newRunService(config, shared),
		stored:    stored,
		workflows: workflows.Service{Library: stored, Definitions: shared.submitter.Definitions, Schedules: timetable, Runs: shared.submitter},
		schedules: schedules.Service{Schedules: timetable, Index: shared.index, Now: config.Now},
		keys:      sshkeys.NewRegistry(config.Store, config.Now),
		recorder:  audit.NewRecorder(config.Store, config.Now, config.Logger),
		bounds:    edge.NewBounds(config.Limits, blobs.MaxMessageBytes),
		views:     live.NewFeeds(),
	}
	g.sse = sse.New(sse.Config{
		Index: g.index, Reader: g.reader, Pollers: g.pollers, Events: g.events, Logs: g.runs.SendLogs, Bounds: g.bounds, Log: config.Logger,
		Stopping: g.stopping, KeepAlive: config.StreamKeepAlive, WriteTimeout: config.StreamWriteTimeout,
	})
	g.tunnel = tunnel.New(tunnel.Config{
		Client: config.Client, Nodes: config.Nodes, Index: g.index, Reader: g.reader, Store: config.Store, Signer: g.signer, Recorder: g.recorder,
		Observer: config.Observer, ApproveUserRuns: config.ApproveUserRuns, PeerTLS: config.PeerTLS, Now: config.Now, Log: config.Logger,
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
