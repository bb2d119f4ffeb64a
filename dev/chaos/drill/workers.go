package drill

import (
	"errors"
	"fmt"
	"time"
)

// killWorker kills a worker as soon as the first task runs on it, while others are starting.
func killWorker(y *Cluster) error {
	if err := y.start("a", "b"); err != nil {
		return err
	}
	gate := y.gate("work")
	d := y.crowd("crowd", 10, job{gate: gate})
	tasks := namesOf(d)
	id, err := y.submit(d)
	if err != nil {
		return err
	}
	if err := y.awaitStarted(id, tasks, "", 1); err != nil {
		return err
	}
	victim, other := "a", "b"
	if n, err := y.started(id, tasks, victim); err != nil {
		return err
	} else if n == 0 {
		victim, other = other, victim
	}
	killed := time.Now()
	if err := y.kill(victim); err != nil {
		return err
	}
	if err := y.awaitStarted(id, tasks, other, len(tasks)); err != nil {
		return err
	}
	if err := y.recovered(id, tasks, victim, killed); err != nil {
		return err
	}
	if err := y.open(gate); err != nil {
		return err
	}
	_, err = y.finished(id)
	return err
}

// recovered checks that the tasks that ran on a lost node started again in time.
func (y *Cluster) recovered(id string, tasks []string, node string, lost time.Time) error {
	promise := y.Scale.Heartbeat + backoffMs*time.Millisecond + y.Scale.Slack
	var worst time.Duration
	var errs []error
	for _, task := range tasks {
		executions, err := y.executions(id, task)
		if err != nil {
			return err
		}
		for i, e := range executions {
			if e.node != node || i+1 == len(executions) {
				continue
			}
			took := executions[i+1].start.Sub(lost)
			worst = max(worst, took)
			if took > promise {
				errs = append(errs, fmt.Errorf("task %s started again %s after %s was lost, which is more than %s", task, took, node, promise))
			}
		}
	}
	if worst > 0 {
		y.report("recovery: %.1f s after the worker was lost (heartbeat time-out %s, back-off %d ms)", worst.Seconds(), y.Scale.Heartbeat, backoffMs)
	}
	return errors.Join(errs...)
}

// stopWorker freezes a worker until its tasks have moved elsewhere, then thaws it.
func stopWorker(y *Cluster) error {
	return y.awayAndBack(
		func() error { return y.freeze("a") }, func() error { return y.thaw("a") },
		func(string, []string, time.Time) error { return nil })
}

// cutLong cuts a worker off until its tasks have ended by their lease and moved elsewhere, and then reconnects it.
func cutLong(y *Cluster) error {
	return y.awayAndBack(
		func() error { y.link("a", "temporal").Cut(); return nil },
		func() error { y.link("a", "temporal").Restore(); return nil },
		y.endedByLease)
}

// awayAndBack takes worker a away while tasks run on it, checks them when they have moved to b, and brings a back. The
// tasks leave processes that ignore SIGTERM, run in their own sessions, and were forked twice.
func (y *Cluster) awayAndBack(begin, end func() error, check func(id string, tasks []string, gone time.Time) error) error {
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
	gone := time.Now()
	if err := begin(); err != nil {
		return err
	}
	if err := y.awaitStarted(id, tasks, "b", len(tasks)); err != nil {
		return err
	}
	if err := errors.Join(y.recovered(id, tasks, "a", gone), check(id, tasks, gone)); err != nil {
		return err
	}
	if err := y.pause(y.Scale.Long - time.Since(gone)); err != nil {
		return err
	}
	if err := end(); err != nil {
		return err
	}
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

// backAgain checks that a worker that was away runs tasks again, and that the other worker completed the run.
func (y *Cluster) backAgain(worker, id, gate, by string) error {
	if err := y.awaitNodes(worker); err != nil {
		return err
	}
	again, err := y.submit(y.crowd("again", 2, job{node: worker}))
	if err != nil {
		return err
	}
	if _, err := y.finished(again); err != nil {
		return fmt.Errorf("a run on %s after its return: %w", worker, err)
	}
	if err := y.open(gate); err != nil {
		return err
	}
	r, err := y.finished(id)
	if err != nil {
		return err
	}
	for name, task := range r.Tasks {
		if task.Node != by {
			err = errors.Join(err, fmt.Errorf("task %s completed on %s, not on %s", name, task.Node, by))
		}
	}
	return err
}

// runOn submits a run and waits until all its tasks have started on a node, which is the only one.
func (y *Cluster) runOn(node string, d definition) (id string, tasks []string, err error) {
	if id, err = y.submit(d); err != nil {
		return "", nil, err
	}
	tasks = namesOf(d)
	return id, tasks, y.awaitStarted(id, tasks, node, len(tasks))
}

// awaitStarted waits until n tasks of a run have their newest execution on a node; "" means any node.
func (y *Cluster) awaitStarted(id string, tasks []string, node string, n int) error {
	have := 0
	err := y.eventually(fmt.Sprintf("%d of the tasks of %s run on %s", n, id, node), func() (_ bool, err error) {
		have, err = y.started(id, tasks, node)
		return have >= n, err
	})
	if err == nil {
		return nil
	}
	if r, getErr := y.get(id); getErr == nil {
		for name, task := range r.Tasks {
			err = fmt.Errorf("%w; %s is %s (%s) on %q, attempt %d: %s", err, name, task.State, task.Reason, task.Node, task.Attempt, task.Error)
		}
	}
	return fmt.Errorf("%w; %d do", err, have)
}
