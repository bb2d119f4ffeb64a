package drill

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// verdict is the result of comparing the marks of a run with its status.
type verdict struct {
	tasks int
	// lost holds completed tasks whose work was not done, and doubled those whose work was done, or in progress, twice.
	lost, doubled []error
	// repeated counts work that was repeated because its worker was killed before it could store the result. No system
	// can know that such work was done.
	repeated int
}

func (v *verdict) err() error { return errors.Join(append(v.lost, v.doubled...)...) }

// judge compares an ended run with what its attempts did, including those of its child runs.
func (y *Cluster) judge(r *run) (*verdict, error) {
	v := &verdict{}
	return v, y.judgeRun(v, r)
}

func (y *Cluster) judgeRun(v *verdict, r *run) error {
	for _, name := range slices.Sorted(maps.Keys(r.Tasks)) {
		task := r.Tasks[name]
		v.tasks++
		var err error
		switch {
		case task.ChildRun != "":
			err = y.judgeChild(v, fmt.Sprintf("task %s of %s", name, r.ID), task)
		case task.Count != nil:
			err = y.judgeInstances(v, r, name)
		default:
			err = y.judgeTask(v, r, name, task)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (y *Cluster) judgeTask(v *verdict, r *run, name string, task runTask) error {
	executions, err := y.executions(r.ID, name)
	if err == nil {
		v.judge(fmt.Sprintf("task %s of %s", name, r.ID), task, executions, y.diedWith)
	}
	return err
}

// judgeInstances checks a fanned-out task: each instance exists, and each has completed if the task has.
func (y *Cluster) judgeInstances(v *verdict, r *run, name string) error {
	task := r.Tasks[name]
	instances, err := y.instances(r.ID, name)
	if err != nil {
		return err
	}
	for i := range *task.Count {
		one, there := instances[instance(name, i)]
		v.tasks++
		switch {
		case !there:
			v.lost = append(v.lost, fmt.Errorf("instance %s of %s is not listed", instance(name, i), r.ID))
			continue
		case task.State == v1.TaskCompleted && one.State != v1.TaskCompleted:
			v.lost = append(v.lost, fmt.Errorf("instance %s of %s is %s in a task that is completed", instance(name, i), r.ID, one.State))
		}
		if err := y.judgeTask(v, r, instance(name, i), one); err != nil {
			return err
		}
	}
	if len(instances) > *task.Count {
		v.lost = append(v.lost, fmt.Errorf("task %s of %s has %d instances and says %d", name, r.ID, len(instances), *task.Count))
	}
	return nil
}

// judgeChild judges the run that a task has started.
func (y *Cluster) judgeChild(v *verdict, name string, task runTask) error {
	child, err := y.get(task.ChildRun)
	if err != nil {
		return err
	}
	if v1.IsTaskTerminal(task.State) && (task.State == v1.TaskCompleted) != (child.State == v1.RunCompleted) {
		v.lost = append(v.lost, fmt.Errorf("%s is %s and its run %s is %s", name, task.State, child.ID, child.State))
	}
	return y.judgeRun(v, child)
}

// judge judges one task. executions are ordered by start; diedWith reports whether the result of a finished execution
// may have been lost because its worker was killed.
func (v *verdict) judge(name string, task runTask, executions []execution, diedWith func(execution) bool) {
	var ends []execution
	for i, e := range executions {
		if !e.end.IsZero() {
			ends = append(ends, e)
		}
		if e.overlaps > 0 {
			v.doubled = append(v.doubled, fmt.Errorf("%s: %d processes of older claims were alive when claim %d started on %s", name, e.overlaps, e.claim, e.node))
		}
		if i > 0 && executions[i-1].lastSign.After(e.start) {
			v.doubled = append(v.doubled, fmt.Errorf("%s: claim %d on %s still worked %s after claim %d had started on %s",
				name, executions[i-1].claim, executions[i-1].node, executions[i-1].lastSign.Sub(e.start), e.claim, e.node))
		}
	}
	kept := slices.DeleteFunc(slices.Clone(ends), diedWith)
	v.repeated += min(len(ends)-len(kept), max(len(ends)-1, 0))
	if len(kept) > 1 {
		ends := kept
		v.doubled = append(v.doubled, fmt.Errorf("%s was done %d times, by claims %d (%s) and %d (%s)", name, len(ends), ends[0].claim, ends[0].node, ends[1].claim, ends[1].node))
	}
	if task.State != v1.TaskCompleted {
		return
	}
	// An execution prints only its node and claim.
	ok := slices.ContainsFunc(ends, func(e execution) bool { return task.Result.Stdout == fmt.Sprintf("by %s %d\n", e.node, e.claim) })
	if !ok {
		v.lost = append(v.lost, fmt.Errorf("%s completed with %q, which no attempt that ended has printed", name, task.Result.Stdout))
	}
}

// finished waits for the end of a run, and checks that it completed with each of its tasks done once.
func (y *Cluster) finished(id string) (*run, error) {
	r, err := y.awaitEnd(id)
	if err != nil {
		return nil, err
	}
	if r.State != v1.RunCompleted {
		err = fmt.Errorf("run %s is %s: %s", id, r.State, r.Error)
	}
	v, judgeErr := y.judge(r)
	if judgeErr != nil {
		return nil, errors.Join(err, judgeErr)
	}
	return r, errors.Join(err, v.err())
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
