package runview

import (
	"context"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// TaskRef refers to the task or instance that a request is about.
type TaskRef struct {
	Name     string    // "each" or "each[3]"
	TaskName string    // "each"
	Task     *TaskView // the task
	// Instance is the instance, or nil if the reference is to the task itself.
	Instance *InstanceView
}

// TaskRef returns the task or instance with the given name: "each" or "each[3]".
func (r *Reader) TaskRef(ctx context.Context, v *View, name string) (TaskRef, error) {
	if t := v.Tasks[name]; t != nil {
		return TaskRef{Name: name, TaskName: name, Task: t}, nil
	}
	task, index, ok := names.ParseInstanceName(name)
	t := v.Tasks[task]
	if !ok || t == nil {
		return TaskRef{}, v.NoTask(name)
	}
	switch count := int(t.Task.GetCount()); {
	case t.Task.Count == nil:
		return TaskRef{}, rpcerror.NotFound("task %s of run %s has not fanned out", task, v.Run.GetId())
	case index >= count:
		return TaskRef{}, rpcerror.NotFound("task %s of run %s has no instance %d; it has %d instances, starting with %s", task, v.Run.GetId(), index, count, names.InstanceName(task, 0))
	}
	found, err := r.Instances(ctx, v, task, index, 1)
	if err != nil {
		return TaskRef{}, err
	}
	if len(found) == 0 || int(found[0].Instance.GetIndex()) != index {
		return TaskRef{}, rpcerror.NotFound("run %s did not return %s", v.Run.GetId(), name)
	}
	return TaskRef{Name: name, TaskName: task, Task: t, Instance: found[0]}, nil
}

// LeaseUntil has the meaning of TaskView.LeaseUntil.
func (s TaskRef) LeaseUntil() *timestamppb.Timestamp {
	if s.Instance == nil {
		return s.Task.LeaseUntil
	}
	return s.Instance.LeaseUntil
}

// Brief returns the task or instance as watchers see it, in the form of a task.
func (s TaskRef) Brief() *v1.Task {
	if s.Instance == nil {
		return s.Task.Brief
	}
	return v1.InstanceTask(s.Task.Task, s.Instance.Brief)
}

// Claim returns the number of the newest dispatch.
func (s TaskRef) Claim() int32 {
	if s.Instance == nil {
		return s.Task.Claim
	}
	return s.Instance.Claim
}

// Attempts returns the attempts that have ended.
func (s TaskRef) Attempts() []*v1.Attempt {
	if s.Instance == nil {
		return s.Task.Task.GetAttempts()
	}
	return s.Instance.Instance.GetAttempts()
}
