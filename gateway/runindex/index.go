package runindex

import (
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/gateway/runview"
)

// Index finds runs in Temporal's visibility. It is safe for concurrent use.
type Index struct {
	client client.Client
	reader *runview.Reader
	now    func() time.Time
	recent recentRuns
}

// New returns an index of the runs that a reader reads.
func New(c client.Client, reader *runview.Reader, now func() time.Time) *Index {
	return &Index{client: c, reader: reader, now: now}
}

// AddSubmitted records a run that owner has just submitted, because visibility may not list it yet.
func (x *Index) AddSubmitted(id, owner string, submitted time.Time) {
	x.recent.add(submittedRun{id, owner, submitted})
}
