package workers

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
)

// This file shows the external tests of this package what they check inside it.

// CollectErrors is collectErrors.
const CollectErrors = collectErrors

// Collector is a collector that a test drives.
type Collector struct{ c *collector }

// NewCollector returns a collector of a store.
func NewCollector(conn *Connection, s *store.Store, logger *slog.Logger) Collector {
	return Collector{newCollector(conn, s, 0, 0, logger)}
}

// Store returns the store.
func (c Collector) Store() *store.Store { return c.c.store }

// SetClock replaces the clock.
func (c Collector) SetClock(now func() time.Time) { c.c.now = now }

// SetLimit sets how many runs a pass considers.
func (c Collector) SetLimit(runs int) { c.c.limit = runs }

// SetRetention sets how long the values of a run are kept.
func (c Collector) SetRetention(d time.Duration) { c.c.retention = d }

// SetInterval sets the time between two passes.
func (c Collector) SetInterval(d time.Duration) { c.c.interval = d }

// SetLogger replaces the logger.
func (c Collector) SetLogger(logger *slog.Logger) { c.c.log = logger }

// Pass makes one pass over the runs and returns the number of runs whose values it has removed.
func (c Collector) Pass(ctx context.Context) (int, error) { return c.c.pass(ctx) }

// Announce gives a sign of life.
func (c Collector) Announce(ctx context.Context) error { return c.c.announce(ctx) }

// Run starts a pass whenever one is due, until ctx ends.
func (c Collector) Run(ctx context.Context) { c.c.run(ctx) }

// WarnOfServer warns if the server keeps runs for less time than the store.
func (c Collector) WarnOfServer(ctx context.Context) error { return c.c.warnOfServer(ctx) }

// CountStuckRuns returns how many runs of a server are stuck.
func CountStuckRuns(ctx context.Context, conn client.Client) int {
	s := &stuckRuns{client: conn, log: slog.New(slog.DiscardHandler)}
	s.look(ctx)
	return int(s.runs())
}

// Quiet returns the logger of connections.
func Quiet(logger *slog.Logger) *slog.Logger { return quiet(logger) }

// CurrentTerm returns the term of a process, or nil while another process leads.
func (c *Control) CurrentTerm() any {
	if t := c.current(); t != nil {
		return t
	}
	return nil
}

// Knows reports whether a node is up in the leader's view of the fleet.
func (c *Control) Knows(node string) bool {
	t := c.current()
	if t == nil {
		return false
	}
	f := t.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.seen[node]
	return ok && s.entry.Record.GetState() != v1.NodeOffline
}

// WithSweepInterval sets how often the placement queue looks for runs that have ended.
func (c ControlConfig) WithSweepInterval(d time.Duration) ControlConfig {
	c.sweepInterval = d
	return c
}

// Elsewhere makes a node appear to run where the locks of the others are not seen: in a container, or on a copy of the
// machine, which has the same identity.
func (c *NodeConfig) Elsewhere(locks string) { c.lockDir = locks }

// NodeFolder returns the name for files of a node on its machine.
func NodeFolder(fleet, name string) string { return nodeFolder(fleet, name) }

// RelieveDead ends the leadership of a killed process of a machine whose locks are in the folder locks.
func (c ControlConfig) RelieveDead(ctx context.Context, locks string) {
	c.lockDir = locks
	c.relieve(ctx)
}
