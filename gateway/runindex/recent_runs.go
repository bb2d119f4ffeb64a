package runindex

import (
	"slices"
	"strings"
	"sync"
)

// maxRecent is how many ids of runs a gateway remembers; visibility lags by
// moments, so it need not be many.
const maxRecent = 256

// recentRuns remembers the ids of the runs that this gateway submitted last. It
// is safe for concurrent use.
type recentRuns struct {
	mu  sync.Mutex
	ids []string // oldest first
}

// add makes a run the newest, also one that is remembered already.
func (r *recentRuns) add(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids = slices.DeleteFunc(r.ids, func(known string) bool { return known == id })
	if len(r.ids) == maxRecent {
		r.ids = slices.Delete(r.ids, 0, 1)
	}
	r.ids = append(r.ids, id)
}

func (r *recentRuns) newest() (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ids) == 0 {
		return "", false
	}
	return r.ids[len(r.ids)-1], true
}

// findPrefix returns the newest first.
func (r *recentRuns) findPrefix(prefix string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, id := range slices.Backward(r.ids) {
		if strings.HasPrefix(id, prefix) {
			found = append(found, id)
		}
	}
	return found
}
