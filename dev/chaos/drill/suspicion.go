package drill

import (
	"fmt"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// neverStarts freezes a worker that has taken a task but not started it: the task waits for its parent's output in a
// store that the worker cannot reach.
func neverStarts(y *Cluster) error {
	if err := y.start("p"); err != nil {
		return err
	}
	if err := y.startWorker("a", "--label", "x"); err != nil {
		return err
	}
	if err := y.awaitNodes("a"); err != nil {
		return err
	}
	y.link("a", "gateway").Cut()
	id, err := y.submit(definition{Name: "silent", Tasks: map[string]taskSpec{
		// The output is too large for the request itself.
		"parent": y.task(job{node: "p", last: `printf '{"text":"%0100000d"}' 7 > "$SWITCHYARD_OUTPUT"`}),
		"child":  y.task(job{ticks: 1, after: []string{"parent"}, label: "x"}),
	}})
	if err != nil {
		return err
	}
	err = y.eventually("the child has been given to a", func() (bool, error) {
		r, err := y.get(id)
		if err != nil {
			return false, err
		}
		child := r.Tasks["child"]
		return child.Node == "a" && v1.IsTaskDispatched(child.State), nil
	})
	if err != nil {
		return err
	}
	if err := y.pause(pickUp); err != nil {
		return err
	}
	frozen := time.Now()
	if err := y.freeze("a"); err != nil {
		return err
	}
	if err := y.startWorker("b", "--label", "x"); err != nil {
		return err
	}
	r, err := y.finished(id)
	if err != nil {
		return err
	}
	executions, err := y.executions(id, "child")
	if err != nil {
		return err
	}
	y.report("never started: it started elsewhere %.1f s after its worker froze", executions[0].start.Sub(frozen).Seconds())
	if child := r.Tasks["child"]; child.Attempt != 0 || child.Suspicions == 0 || child.Node != "b" {
		return fmt.Errorf("child: attempt %d, %d suspicions, on %q; want attempt 0 and a suspicion, on b", child.Attempt, child.Suspicions, child.Node)
	}
	return nil
}

// pickUp exceeds the time that a worker needs to take a task from its queue.
const pickUp = time.Second
