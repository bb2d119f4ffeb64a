package rundetails

import (
	"log/slog"

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
}

// New returns the handlers of the runs of an index.
func New(index *runindex.Index, reader *runview.Reader, events *runevents.Reader, kept *store.Store, log *slog.Logger) Details {
	results := results{reader: reader, store: kept, log: log}
	return Details{
		lists:     lists{index: index, reader: reader, events: events},
		tasks:     tasks{index: index, reader: reader, results: results},
		instances: instances{index: index, reader: reader, store: kept, results: results, log: log},
	}
}
