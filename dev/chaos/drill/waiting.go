package drill

import (
	"errors"
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
)

// killWaiting kills everything while runs wait for a user: one for an approval, one that is paused, and one with a held
// task. They still wait after the restart, and continue when the user lets them.
func killWaiting(y *Cluster) error {
	if err := y.startDev(); err != nil {
		return err
	}
	if err := y.startWorkers("a"); err != nil {
		return err
	}
	gate := y.gate("before")
	two := func(name string) definition {
		return definition{Name: name, Tasks: map[string]taskSpec{
			"before": y.task(job{gate: gate}), "after": y.task(job{after: []string{"before"}}),
		}}
	}
	asks, pauses, holds := two("asks"), two("pauses"), two("holds")
	asks.Tasks["ask"] = approval("before")
	asks.Tasks["after"] = y.task(job{after: []string{"ask"}})
	var ids []string
	for _, d := range []definition{asks, pauses, holds} {
		id, _, err := y.submitAndAwait(d, "before")
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	for _, args := range [][]string{{"runs", "pause", ids[1]}, {"runs", "hold", ids[2], "after"}} {
		if _, err := y.must(args...); err != nil {
			return err
		}
	}
	if err := y.open(gate); err != nil {
		return err
	}
	if err := y.awaitWaiting(ids); err != nil {
		return err
	}
	if err := errors.Join(y.kill("a"), y.kill(devName)); err != nil {
		return err
	}
	if err := y.restartDev(); err != nil {
		return err
	}
	if err := y.startWorkers("a"); err != nil {
		return err
	}
	if err := y.awaitWaiting(ids); err != nil {
		return err
	}
	// By the end of this run the others would have continued, if they wrongly did.
	other, err := y.submit(y.crowd("other", 1, job{ticks: 1}))
	if err != nil {
		return err
	}
	if _, err := y.finished(other); err != nil {
		return err
	}
	for _, id := range ids {
		if n, err := y.started(id, []string{"after"}, ""); err != nil || n > 0 {
			return errors.Join(err, fmt.Errorf("the task after of %s has started without being told to (%d)", id, n))
		}
	}
	for _, args := range [][]string{{"runs", "approve", ids[0], "ask"}, {"runs", "resume", ids[1]}, {"runs", "release", ids[2], "after"}} {
		if _, err := y.must(args...); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if _, err := y.finished(id); err != nil {
			return err
		}
		if err := y.untouched(id, []string{"before", "after"}); err != nil {
			return err
		}
	}
	return nil
}

// submitAndAwait submits a run and waits until the given tasks have started.
func (y *Cluster) submitAndAwait(d definition, tasks ...string) (id string, _ []string, err error) {
	if id, err = y.submit(d); err != nil {
		return "", nil, err
	}
	return id, tasks, y.awaitStarted(id, tasks, "", len(tasks))
}

// awaitWaiting waits until one run waits for approval, one is paused with nothing in flight, and one waits for a held
// task.
func (y *Cluster) awaitWaiting(ids []string) error {
	var seen []string
	err := y.eventually("the runs wait for people", func() (bool, error) {
		seen = seen[:0]
		for i, want := range []string{"pending_approval pending", "paused queued", "running queued held"} {
			r, err := y.get(ids[i])
			if err != nil {
				return false, err
			}
			after := r.Tasks["after"]
			is := r.State + " " + after.State
			if after.Held {
				is += " held"
			}
			if seen = append(seen, is); is != want || r.Tasks["before"].State != v1.TaskCompleted {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("%w; they are %q", err, seen)
	}
	return nil
}
