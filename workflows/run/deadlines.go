package run

import (
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// expire ends a task whose deadline has passed.
func (r *run) expire(i int) {
	r.raise(dag.Expire{Task: i, Error: fmt.Sprintf("it did not end within its deadline of %s%s", r.core.Definition(i).GetDeadline(), r.missedBecause(i))})
}

// expireRun ends the run, whose deadline has passed.
func (r *run) expireRun() {
	r.raise(dag.Abort{
		State: v1.TaskFailed, Reason: v1.ReasonDeadline,
		Error: fmt.Sprintf("the run did not end within its deadline of %s%s", r.Input.GetDefinition().GetDeadline(), r.firstWait(r.core.Counts(), 0, r.core.Len())),
	})
}

// missedBecause returns what task i waits for, or what an instance of it waits for if none runs, to be appended to the error
// about its deadline. It returns "" if the task does not wait.
func (r *run) missedBecause(i int) string {
	if why := r.waitText(i); why != "" {
		return ": " + why
	}
	first, count := r.core.Instances(i)
	return r.firstWait(r.core.InstanceCounts(i), first, count)
}

// firstWait returns the name of the first waiting task among count tasks starting at first, and what it waits for. It returns
// "" if none waits or if any of them runs. counts holds their numbers by state.
func (r *run) firstWait(counts map[string]int, first, count int) string {
	if counts[v1.TaskAssigned]+counts[v1.TaskRunning] > 0 {
		return ""
	}
	for i := first; i < first+count; i++ {
		if why := r.waitText(i); why != "" {
			return fmt.Sprintf("; %s waited: %s", r.core.Name(i), why)
		}
	}
	return ""
}

// waitText returns why task i waits for a node or for its next attempt, or "" if it does not wait.
func (r *run) waitText(i int) string {
	if r.core.Task(i).State != v1.TaskQueued {
		return ""
	}
	return r.status.Text(i)
}
