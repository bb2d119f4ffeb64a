package explanation

import (
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/gateway/runevents"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
)

// Config holds what the handlers share.
type Config struct {
	Client client.Client
	Index  *runindex.Index
	Reader *runview.Reader
	Events *runevents.Reader
	Runs   Runs
	Now    func() time.Time
	Log    *slog.Logger
}

// Explanations serves the calls that explain where and when tasks run. It is safe for concurrent use.
type Explanations struct {
	explainer
	planner
}

// New returns the handlers.
func New(c Config) Explanations {
	queue := placementQueue{client: c.Client}
	return Explanations{
		explainer: explainer{index: c.Index, reader: c.Reader, events: c.Events, queue: queue, now: c.Now, log: c.Log},
		planner:   planner{runs: c.Runs, queue: queue, now: c.Now},
	}
}
