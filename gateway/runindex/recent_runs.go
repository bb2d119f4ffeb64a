package runindex

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// maxRecent is the number of run ids that a gateway remembers. Visibility lags only by moments, so few are
// enough.
const maxRecent = 256

// submittedRun is a run, who submitted it, and when.
type submittedRun struct {
	id, owner string
	submitted time.Time
}

// recentRuns remembers the runs that this gateway submitted last. It is safe for concurrent use.
type recentRuns struct {
	mu   sync.Mutex
	runs []submittedRun // oldest first
}

// add makes a run the newest, even if it is already remembered.
func (r *recentRuns) add(run submittedRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs = slices.DeleteFunc(r.runs, func(known submittedRun) bool { return known.id == run.id })
	if len(r.runs) == maxRecent {
		r.runs = slices.Delete(r.runs, 0, 1)
	}
	r.runs = append(r.runs, run)
}

// newestOf returns the newest run of an owner.
func (r *recentRuns) newestOf(owner string) (run submittedRun, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range slices.Backward(r.runs) {
		if run.owner == owner {
			return run, true
		}
	}
	return submittedRun{}, false
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
