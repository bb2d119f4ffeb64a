package runindex

import (
	"slices"
	"strings"
	"sync"
)

// maxRecent is the number of run ids that a gateway remembers. Visibility lags only by moments, so few are
// enough.
const maxRecent = 256

// recentRun is a run that has just been submitted.
type recentRun struct{ id, owner string }

// recentRuns remembers the runs that this gateway submitted last. It is safe for concurrent use.
type recentRuns struct {
	mu   sync.Mutex
	runs []recentRun // oldest first
}

// add makes a run the newest, even if it is already remembered.
func (r *recentRuns) add(run recentRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs = slices.DeleteFunc(r.runs, func(known recentRun) bool { return known.id == run.id })
	if len(r.runs) == maxRecent {
		r.runs = slices.Delete(r.runs, 0, 1)
	}
	r.runs = append(r.runs, run)
}

// newest returns the newest run whose owner reaches accepts.
func (r *recentRuns) newest(reaches func(owner string) bool) (id string, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range slices.Backward(r.runs) {
		if reaches(run.owner) {
			return run.id, true
		}
	}
	return "", false
}

// findPrefix returns the ids that start with prefix of runs whose owners reaches accepts, newest first.
func (r *recentRuns) findPrefix(prefix string, reaches func(owner string) bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, run := range slices.Backward(r.runs) {
		if strings.HasPrefix(run.id, prefix) && reaches(run.owner) {
			found = append(found, run.id)
		}
	}
	return found
}
