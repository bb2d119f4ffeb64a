package runretry

import (
	"context"

	"go.temporal.io/sdk/client"

	"switchyard/activities/store"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runupdate"
	"switchyard/gateway/runview"
)

// Config holds what the handlers share.
type Config struct {
	Client client.Client
	// Namespace is the Temporal namespace of Client.
	Namespace string
	Index     *runindex.Index
	Reader    *runview.Reader
	Store     *store.Store
	Updater   *runupdate.Updater
	Approvals approvals
}

// Retries serves the calls about dead letters and the next generations of runs. It is safe for concurrent use.
type Retries struct {
	deadLetters
	letterRetries
	runRetries
}

// New returns the handlers.
func New(c Config) Retries {
	letters := letterReader{reader: c.Reader, store: c.Store}
	wait := storeWait{probe: func(ctx context.Context) error { return c.Store.Probe(ctx, store.ProbeRun) }}
	r := NewReopener(c)
	return Retries{
		deadLetters:   deadLetters{index: c.Index, reader: c.Reader, store: c.Store, letters: letters},
		letterRetries: letterRetries{index: c.Index, reader: c.Reader, store: wait, letters: letters, updater: c.Updater, reopener: r},
		runRetries:    runRetries{index: c.Index, reader: c.Reader, store: wait, reopener: r},
	}
}

// NewReopener returns what starts new generations of closed runs.
func NewReopener(c Config) Reopener {
	statuses := statusKeeper{reader: c.Reader, store: c.Store}
	return Reopener{
		client: c.Client, namespace: c.Namespace, reader: c.Reader, statuses: statuses,
		partitions: partitionEnder{client: c.Client, statuses: statuses}, approvals: c.Approvals,
	}
}
