package runstreams

import (
	"switchyard/activities/store"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
)

// Streams serves the calls that follow runs. It is safe for concurrent use.
type Streams struct {
	watches
	logs
}

// New returns the handlers of the runs of an index. Their streams end with the code Unavailable once stopping is closed.
func New(index *runindex.Index, reader *runview.Reader, pollers *runview.Pollers, kept *store.Store, stopping <-chan struct{}) Streams {
	return Streams{
		watches: watches{index: index, pollers: pollers, shutdown: stopping},
		logs:    logs{index: index, reader: reader, store: kept, pollers: pollers, shutdown: stopping},
	}
}
