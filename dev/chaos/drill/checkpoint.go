package drill

import (
	"fmt"
	"time"
)

// killCounting kills the worker of a task that keeps a count in its checkpoint. The task continues from there on
// another worker.
func killCounting(y *Cluster) error {
	if err := y.start("a"); err != nil {
		return err
	}
	gate := y.gate("counted")
	id, _, err := y.runOn("a", y.crowd("count", 1, job{gate: gate, counts: true}))
	if err != nil {
		return err
	}
	// Anything that a live attempt wrote that long ago has been sent with a heartbeat.
	told := 0
	err = y.eventually("the task has counted for longer than a heartbeat time-out", func() (bool, error) {
		told, err = y.counted(id, "t0", time.Now().Add(-y.Scale.Heartbeat))
		return told > 2, err
	})
	if err != nil {
		return err
	}
	if err := y.startWorkers("b"); err != nil {
		return err
	}
	if told, err = y.counted(id, "t0", time.Now().Add(-y.Scale.Heartbeat)); err != nil {
		return err
	}
	if err := y.kill("a"); err != nil {
		return err
	}
	last, err := y.counted(id, "t0", time.Now())
	if err != nil {
		return err
	}
	if err := y.awaitStarted(id, []string{"t0"}, "b", 1); err != nil {
		return err
	}
	if err := y.open(gate); err != nil {
		return err
	}
	if _, err := y.finished(id); err != nil {
		return err
	}
	marks, err := y.marks(id, "t0")
	if err != nil {
		return err
	}
	for _, m := range marks {
		if m.node != "b" || m.what != "start" {
			continue
		}
		y.report("checkpoint: killed at %d, continues from %d", last, m.ticks)
		if m.ticks < told || m.ticks > last {
			return fmt.Errorf("task t0 of %s continues from %d; %d had been reported, and it came to %d", id, m.ticks, told, last)
		}
	}
	return nil
}

// counted returns how far a task had counted at the given time.
func (y *Cluster) counted(id, task string, at time.Time) (n int, err error) {
	marks, err := y.marks(id, task)
	for _, m := range marks {
		if m.at.Before(at) {
			n = max(n, m.ticks)
		}
	}
	return n, err
}
