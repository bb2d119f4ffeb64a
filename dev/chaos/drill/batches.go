package drill

import (
	"errors"
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
)

// killBatch kills a worker in the middle of batches: first when their progress is known for certain, then at any
// moment.
func killBatch(y *Cluster) error {
	if err := y.start("a"); err != nil {
		return err
	}
	if err := y.killHalfway(); err != nil {
		return err
	}
	if err := y.startWorkers("a"); err != nil {
		return err
	}
	const instances = 120
	id, err := y.submit(definition{Name: "flow", Tasks: map[string]taskSpec{"each": y.task(job{ticks: 1, tick: 0.05, instances: instances, batch: "auto"})}})
	if err != nil {
		return err
	}
	if err := y.awaitBegun(id, "each", instances/4); err != nil {
		return err
	}
	if err := y.kill("b"); err != nil {
		return err
	}
	if _, err := y.finished(id); err != nil {
		return err
	}
	again := 0
	for i := range instances {
		executions, err := y.executions(id, instance("each", i))
		if err != nil {
			return err
		}
		again += len(executions) - 1
	}
	y.report("kill in the middle of batches: %d of %d instances were started again", again, instances)
	return nil
}

// killHalfway kills worker a when a heartbeat has reported half of each batch as ended. That half is not repeated, the
// running instance is, and the rest had not started.
func (y *Cluster) killHalfway() error {
	const batches, size, half = 4, 10, 5
	gate := y.gate("halfway")
	each := y.task(job{instances: batches * size, batch: size,
		gate: fmt.Sprintf("${{ int(input.index) %% %d < %d ? '' : '%s' }}", size, half, gate)})
	id, err := y.submit(definition{Name: "batch", Tasks: map[string]taskSpec{"each": each}})
	if err != nil {
		return err
	}
	err = y.eventually("half of each batch has ended, and the run knows", func() (bool, error) {
		known, err := y.instances(id, "each")
		for i := half; i < batches*size; i += size {
			if err != nil || known[instance("each", i)].State != v1.TaskRunning {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	if err := y.kill("a"); err != nil {
		return err
	}
	if err := errors.Join(y.open(gate), y.startWorkers("b")); err != nil {
		return err
	}
	if _, err := y.finished(id); err != nil {
		return err
	}
	var errs []error
	for i := range batches * size {
		executions, err := y.executions(id, instance("each", i))
		if err != nil {
			return err
		}
		var nodes string
		for _, e := range executions {
			nodes += fmt.Sprint(e.node, e.attempt, " ")
		}
		want := "b0 "
		switch {
		case i%size < half:
			want = "a0 "
		case i%size == half:
			want = "a0 b1 "
		}
		if nodes != want {
			errs = append(errs, fmt.Errorf("instance %d of %s was executed on %s, want %s (node and attempt)", i, id, nodes, want))
		}
	}
	return errors.Join(errs...)
}
