package drill

import (
	"errors"
	"fmt"
	"time"
)

// cutShort cuts a worker off for a moment, which its running tasks must not notice.
func cutShort(y *Cluster) error {
	if err := y.start("a", "b"); err != nil {
		return err
	}
	gate := y.gate("work")
	id, tasks, err := y.runOn("", y.crowd("crowd", 6, job{gate: gate}))
	if err != nil {
		return err
	}
	y.link("a", "temporal").Cut()
	if err := y.pause(y.Scale.Short); err != nil {
		return err
	}
	y.link("a", "temporal").Restore()
	// Anything that cannot survive a short server outage has ended by then.
	if err := y.pause(2 * y.Scale.Short); err != nil {
		return err
	}
	if err := y.untouched(id, tasks); err != nil {
		return err
	}
	if err := y.open(gate); err != nil {
		return err
	}
	if _, err := y.finished(id); err != nil {
		return err
	}
	return y.untouched(id, tasks)
}

// untouched checks that each task was started once and was not asked to end.
func (y *Cluster) untouched(id string, tasks []string) error {
	var errs []error
	for _, task := range tasks {
		executions, err := y.executions(id, task)
		if err != nil {
			return err
		}
		if len(executions) != 1 || !executions[0].term.IsZero() || executions[0].attempt != 0 {
			errs = append(errs, fmt.Errorf("task %s has noticed: %+v", task, executions))
		}
	}
	return errors.Join(errs...)
}

// cutLong cuts a worker off until its tasks have ended by their lease and moved elsewhere, and then reconnects it.
func cutLong(y *Cluster) error {
	if err := y.start("a"); err != nil {
		return err
	}
	gate := y.gate("work")
	id, tasks, err := y.runOn("a", y.crowd("crowd", 4, job{gate: gate, tree: true}))
	if err != nil {
		return err
	}
	if err := y.startWorkers("b"); err != nil {
		return err
	}
	cut := time.Now()
	y.link("a", "temporal").Cut()
	if err := y.awaitStarted(id, tasks, "b", len(tasks)); err != nil {
		return err
	}
	if err := y.recovered(id, tasks, "a", cut); err != nil {
		return err
	}
	if err := y.endedByLease(id, tasks, cut); err != nil {
		return err
	}
	if err := y.pause(y.Scale.Long - time.Since(cut)); err != nil {
		return err
	}
	y.link("a", "temporal").Restore()
	return y.backAgain("a", id, gate, "b")
}

// endedByLease checks that the first execution of each task got SIGTERM and was dead before its heartbeat time-out.
func (y *Cluster) endedByLease(id string, tasks []string, cut time.Time) error {
	var errs []error
	var first, last time.Duration
	for _, task := range tasks {
		executions, err := y.executions(id, task)
		if err != nil {
			return err
		}
		e := executions[0]
		if e.term.IsZero() {
			errs = append(errs, fmt.Errorf("task %s got no SIGTERM", task))
			continue
		}
		took := e.term.Sub(cut)
		if first == 0 {
			first = took
		}
		first, last = min(first, took), max(last, took)
		if took > y.Scale.Heartbeat {
			errs = append(errs, fmt.Errorf("task %s got SIGTERM %s after the cut, which is after its heartbeat time-out", task, took))
		}
	}
	y.report("lease: SIGTERM %.1f to %.1f s after the cut", first.Seconds(), last.Seconds())
	return errors.Join(errs...)
}
