package drill

import (
	"errors"
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
)

// oldClaim cuts a worker off from everything while its tasks end, so that there is no record and they run again. Its
// late reports must not count.
func oldClaim(y *Cluster) error {
	if err := y.start("a"); err != nil {
		return err
	}
	first, second := y.gate("first"), y.gate("second")
	d := y.crowd("report", 3, job{gate: first, last: fmt.Sprintf("{ [ $SWITCHYARD_NODE = a ] || until [ -e %s ]; do sleep 0.1; done; }", second)})
	id, tasks, err := y.runOn("a", d)
	if err != nil {
		return err
	}
	if err := y.startWorkers("b"); err != nil {
		return err
	}
	y.struck("a") // the result of work done from now on cannot be known
	y.link("a", "temporal").Cut()
	y.link("a", "gateway").Cut()
	if err := y.open(first); err != nil {
		return err
	}
	if err := y.awaitStarted(id, tasks, "b", len(tasks)); err != nil {
		return err
	}
	y.link("a", "temporal").Restore()
	if err := y.awaitNodes("a"); err != nil { // the node has been seen
		return err
	}
	if r, err := y.get(id); err != nil || v1.IsRunTerminal(r.State) {
		return errors.Join(err, fmt.Errorf("the run has ended although its tasks run"))
	}
	y.link("a", "gateway").Restore()
	if err := y.open(second); err != nil {
		return err
	}
	r, err := y.awaitEnd(id)
	if err != nil {
		return err
	}
	for _, task := range tasks {
		executions, err := y.executions(id, task)
		if err != nil {
			return err
		}
		// The record of a is older, and may have arrived before b could write one.
		t, by := r.Tasks[task], executions[len(executions)-1]
		if t.State != v1.TaskCompleted || len(executions) != 2 || t.Node != "a" && t.Node != by.node {
			return fmt.Errorf("task %s is %s on %q after %d executions", task, t.State, t.Node, len(executions))
		}
	}
	return y.unchanged(r)
}

// unchanged checks that an ended run does not change.
func (y *Cluster) unchanged(before *run) error {
	if err := y.pause(y.Scale.Heartbeat); err != nil {
		return err
	}
	after, err := y.get(before.ID)
	if err != nil {
		return err
	}
	if after.State != before.State {
		err = fmt.Errorf("run %s was %s and is %s", before.ID, before.State, after.State)
	}
	for name, task := range before.Tasks {
		if now := after.Tasks[name]; now.State != task.State || now.Node != task.Node || now.Result.Stdout != task.Result.Stdout {
			err = errors.Join(err, fmt.Errorf("task %s was %s on %s and is %s on %s", name, task.State, task.Node, now.State, now.Node))
		}
	}
	return err
}
