package drill

import (
	"errors"
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
)

// retryHalted retries a run that halted before most instances of its fan-outs had started. One of the fan-outs is too
// large for the run itself. Completed instances are kept, and the others run once.
func retryHalted(y *Cluster) error {
	if err := y.start("a", "b"); err != nil {
		return err
	}
	d := definition{Name: "halted", FailurePolicy: "halt", Tasks: map[string]taskSpec{
		"small": y.task(job{instances: 100, ticks: 1}),
		"large": y.task(job{instances: y.Scale.Instances, ticks: 1}),
		"fails": y.task(job{ticks: 10, once: y.gate("once")}),
		"after": y.task(job{after: []string{"small", "large", "fails"}}),
	}}
	d.Tasks["fails"].Retry["maxRetries"] = 0
	id, err := y.submit(d)
	if err != nil {
		return err
	}
	r, err := y.awaitEnd(id)
	if err != nil {
		return err
	}
	never := 0
	for _, task := range []string{"small", "large"} {
		found, err := y.instances(id, task)
		if err != nil {
			return err
		}
		for _, i := range found {
			if i.State == v1.TaskSkipped {
				never++
			}
		}
	}
	y.report("%d instances never started", never)
	if r.State != v1.RunFailed || never == 0 {
		return fmt.Errorf("run %s is %s, and %d of its instances never started", id, r.State, never)
	}
	if _, err := y.must("runs", "retry", id); err != nil {
		return err
	}
	if r, err = y.finished(id); err != nil {
		return err
	}
	if each := r.Tasks["large"]; each.Count == nil || *each.Count != y.Scale.Instances {
		err = fmt.Errorf("run %s has completed with %v instances, not %d", id, each.Count, y.Scale.Instances)
	}
	return errors.Join(err, y.isGeneration(id, 1))
}
