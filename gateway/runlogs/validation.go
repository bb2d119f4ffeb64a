package runlogs

import (
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	"switchyard/workflows/names"
)

// Validate returns an error if the run does not have the requested task, instance, generation or attempt.
func (f *Follower) Validate(v *runview.View) error {
	name, newest := f.req.GetTask(), v.Run.GetGeneration()
	if f.req.GetGeneration() > newest {
		return rpcerror.NotFound("run %s has no generation %d; its newest is %d", f.Run, f.req.GetGeneration(), newest)
	}
	isOlder := f.req.Generation != nil && f.req.GetGeneration() < newest
	if name == "" {
		return nil
	}
	t := v.Tasks[name]
	if task, index, ok := names.ParseInstanceName(name); ok && v.Tasks[task] != nil {
		// A task that is followed may fan out later.
		if count := v.Tasks[task].Task.Count; !isOlder && (count != nil && index >= int(*count) || count == nil && !f.req.GetFollow()) {
			return rpcerror.NotFound("task %s of run %s has no instance %d; it has %d", task, f.Run, index, v.Tasks[task].Task.GetCount())
		}
		return nil
	}
	if t == nil {
		return v.NoTask(name)
	}
	if attempt := f.req.GetAttempt(); !f.req.GetFollow() && !isOlder && t.Task.Count == nil && attempt > t.Brief.GetAttempt() {
		return rpcerror.NotFound("task %s of run %s has no attempt %d in its newest generation; its newest is %d", name, f.Run, attempt, t.Brief.GetAttempt())
	}
	return nil
}
