package drill

import (
	"errors"
	"fmt"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// reattach kills a worker with running containers. Started again soon, the worker continues them, even if they have ended
// meanwhile. If it stays dead, the tasks start anew elsewhere.
func reattach(y *Cluster) error {
	if err := y.startContained("a"); err != nil {
		return err
	}
	if err := y.reattachSoon(); err != nil {
		return fmt.Errorf("a restart within the time-out: %w", err)
	}
	if err := y.reattachEnded(); err != nil {
		return fmt.Errorf("a container that ends without its worker: %w", err)
	}
	if err := y.reattachLate(); err != nil {
		return fmt.Errorf("a worker that stays dead: %w", err)
	}
	return nil
}

// revive kills the worker and starts it again after a pause.
func (y *Cluster) revive(worker string, after time.Duration) error {
	if err := y.kill(worker); err != nil {
		return err
	}
	if err := y.pause(after); err != nil {
		return err
	}
	if err := y.startContainerWorker(worker); err != nil {
		return err
	}
	return y.awaitNodes(worker)
}

func (y *Cluster) reattachSoon() error {
	d := y.contained("soon", "soon", 5, 5, 5)
	id, err := y.submit(d)
	if err != nil {
		return err
	}
	if err := y.awaitContained(id, namesOf(d), 3); err != nil {
		return err
	}
	if err := y.revive("a", 0); err != nil {
		return err
	}
	if err := y.open(y.shared() + "/soon"); err != nil {
		return err
	}
	return y.reattached(id)
}

// reattached checks that each task of a run was completed by its first container.
func (y *Cluster) reattached(id string) error {
	r, _, err := y.containedFinished(id)
	if err != nil {
		return err
	}
	for name, task := range r.Tasks {
		found, e := y.containersOf(id, name)
		if e != nil {
			return e
		}
		if len(found) != 1 || task.Attempt != 0 || task.Node != "a" {
			err = errors.Join(err, fmt.Errorf("task %s was done by %d containers, attempt %d on %s", name, len(found), task.Attempt, task.Node))
		}
	}
	return err
}

func (y *Cluster) reattachEnded() error {
	d := y.contained("ended", "ended", 5)
	id, err := y.submit(d)
	if err != nil {
		return err
	}
	if err := y.awaitContained(id, namesOf(d), 1); err != nil {
		return err
	}
	if err := y.kill("a"); err != nil {
		return err
	}
	if err := y.open(y.shared() + "/ended"); err != nil {
		return err
	}
	err = y.eventually("the container has ended", func() (bool, error) {
		found, err := y.containersOf(id, "t0")
		return err == nil && !found[0].end.IsZero(), err
	})
	if err != nil {
		return err
	}
	if err := y.startContainerWorker("a"); err != nil {
		return err
	}
	return y.reattached(id)
}

// reattachLate leaves the worker dead and checks that its containers end before their tasks start on another worker,
// although both use the same engine.
func (y *Cluster) reattachLate() error {
	d := y.contained("late", "late", 5, 5)
	id, err := y.submit(d)
	if err != nil {
		return err
	}
	if err := y.awaitContained(id, namesOf(d), 2); err != nil {
		return err
	}
	// The start does not count as an attempt until the server knows of it.
	err = y.eventually("the tasks run", func() (bool, error) {
		r, err := y.get(id)
		return err == nil && r.Tasks["t0"].State == v1.TaskRunning && r.Tasks["t1"].State == v1.TaskRunning, err
	})
	if err != nil {
		return err
	}
	if err := y.startContainerWorker("b"); err != nil {
		return err
	}
	if err := y.awaitNodes("b"); err != nil {
		return err
	}
	if err := y.kill("a"); err != nil {
		return err
	}
	err = y.eventually("the tasks run again", func() (bool, error) {
		for _, name := range namesOf(d) {
			if found, err := y.containersOf(id, name); err != nil || len(found) < 2 {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	if left, err := y.engine.containers(id); err != nil || len(left) != 2 {
		return errors.Join(err, fmt.Errorf("%d containers are there while two tasks run for the second time", len(left)))
	}
	if err := y.open(y.shared() + "/late"); err != nil {
		return err
	}
	r, _, err := y.containedFinished(id)
	if err != nil {
		return err
	}
	for name, task := range r.Tasks {
		found, e := y.containersOf(id, name)
		if e != nil {
			return e
		}
		if len(found) != 2 || task.Attempt != 1 || task.Node != "b" {
			err = errors.Join(err, fmt.Errorf("task %s was done by %d containers, attempt %d on %s", name, len(found), task.Attempt, task.Node))
		}
	}
	return err
}
