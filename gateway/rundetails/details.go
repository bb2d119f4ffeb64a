package rundetails

import (
	"log/slog"

	"switchyard/activities/artifacts"
	"switchyard/activities/store"
	"switchyard/gateway/runevents"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
)

// Details serves the calls that read runs. It is safe for concurrent use.
type Details struct {
	lists
	tasks
	instances
	files
}

// New returns the handlers of the runs of an index. Downloads end when stopping is closed.
func New(index *runindex.Index, reader *runview.Reader, events *runevents.Reader, kept *store.Store, log *slog.Logger, stopping <-chan struct{}) Details {
	results, library := results{reader: reader, store: kept, log: log}, &artifacts.Library{Store: kept}
	return Details{
		lists:     lists{index: index, reader: reader, events: events},
		tasks:     tasks{index: index, reader: reader, results: results, library: library},
		instances: instances{index: index, reader: reader, store: kept, results: results, log: log},
		files:     files{index: index, reader: reader, results: results, library: library, slots: make(chan struct{}, downloadsAtOnce), stopping: stopping, log: log},
	}
}
