package drill

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// drains drains the workers one after the other while runs continue. No task is lost and no attempt is spent.
func drains(y *Cluster) error {
	workers := []string{"a", "b", "c"}
	if err := y.start(workers...); err != nil {
		return err
	}
	stop := make(chan struct{})
	var ids []string
	var loadErr error
	var load sync.WaitGroup
	load.Go(func() { ids, loadErr = y.load(stop) })
	drainErr := y.drainInTurn(workers)
	close(stop)
	load.Wait()
	if err := errors.Join(loadErr, drainErr); err != nil {
		return err
	}
	tasks := 0
	for _, id := range ids {
		r, err := y.finished(id)
		if err != nil {
			return err
		}
		for name, task := range r.Tasks {
			tasks++
			if task.Attempt != 0 {
				return fmt.Errorf("task %s of %s has spent %d attempts", name, id, task.Attempt)
			}
		}
	}
	y.report("%d drains: %d runs, %d tasks, no attempt spent", y.Scale.Drains, len(ids), tasks)
	return nil
}

// load submits runs of short and longer tasks until stop is closed.
func (y *Cluster) load(stop <-chan struct{}) (ids []string, err error) {
	for i := 0; ; i++ {
		d := y.crowd(fmt.Sprintf("load-%d", i), 4, job{ticks: 3})
		d.Tasks["longer"] = y.task(job{ticks: 15})
		d.Tasks["after"] = y.task(job{ticks: 1, after: []string{"t0", "t1"}})
		id, err := y.submit(d)
		if err != nil {
			return ids, err
		}
		ids = append(ids, id)
		select {
		case <-stop:
			return ids, nil
		case <-time.After(time.Second):
		}
	}
}

func (y *Cluster) drainInTurn(workers []string) error {
	for i := range y.Scale.Drains {
		worker := workers[i%len(workers)]
		// Every other drain moves running tasks at once.
		deadline := []string{"0s", "10m"}[i%2]
		if _, err := y.must("nodes", "drain", worker, "--deadline", deadline, "--wait"); err != nil {
			return err
		}
		if left := processesWith("SWITCHYARD_NODE=" + worker); len(y.ours(left)) > 0 {
			return fmt.Errorf("drain %d: node %s counts as drained but has %d processes", i, worker, len(left))
		}
		if _, err := y.must("nodes", "undrain", worker); err != nil {
			return err
		}
		if err := y.awaitNodes(worker); err != nil {
			return err
		}
	}
	return nil
}

// ours returns the given processes that belong to this cluster.
func (y *Cluster) ours(pids []int) []int {
	var ours []int
	mine := map[int]bool{}
	for _, pid := range y.left() {
		mine[pid] = true
	}
	for _, pid := range pids {
		if mine[pid] {
			ours = append(ours, pid)
		}
	}
	return ours
}
