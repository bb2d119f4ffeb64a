package drill

import (
	"errors"
	"sync"
)

// outcome holds how a run of the soak ended.
type outcome struct {
	verdict *verdict
	retries int // number of retries of the run
	// mutex and semaphore hold the tasks that share the mutex, and the semaphore.
	mutex, semaphore []place
	children         []string // runs of the same workflow that it has started
	stuck            error    // the run did not end
	broken           error    // the outcome is unknown
}

// tally counts outcomes. It is safe for concurrent use.
type tally struct {
	mu                    sync.Mutex
	runs, tasks, repeated int
	retries               int
	mutex, semaphore      []place
	children              []string
	lost, doubled         []error
	stuck, broken         []error
}

func (t *tally) add(o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs++
	switch {
	case o.broken != nil:
		t.broken = append(t.broken, o.broken)
	case o.stuck != nil:
		t.stuck = append(t.stuck, o.stuck)
	default:
		t.tasks += o.verdict.tasks
		t.repeated += o.verdict.repeated
		t.retries += o.retries
		t.mutex = append(t.mutex, o.mutex...)
		t.semaphore = append(t.semaphore, o.semaphore...)
		t.children = append(t.children, o.children...)
		t.lost = append(t.lost, o.verdict.lost...)
		t.doubled = append(t.doubled, o.verdict.doubled...)
	}
}

func (t *tally) write(y *Cluster) {
	y.report("runs %d, tasks %d: lost %d, doubled %d, stuck %d; done again after a kill %d, not known %d",
		t.runs, t.tasks, len(t.lost), len(t.doubled), len(t.stuck), t.repeated, len(t.broken))
	y.report("retries of runs %d, child runs %d, tasks under one mutex %d", t.retries, len(t.children), len(t.mutex))
}

func (t *tally) err() error {
	return errors.Join(errors.Join(t.lost...), errors.Join(t.doubled...), errors.Join(t.stuck...), errors.Join(t.broken...))
}
