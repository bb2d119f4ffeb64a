package gateway

import (
	"context"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// subject is the task or the instance that a request is about.
type subject struct {
	name string    // "each" or "each[3]"
	task string    // "each"
	of   *taskView // the task
	// one is the instance; nil: it is the task itself.
	one *instanceView
}

// subject returns what a name stands for: a task, or an instance such as "each[3]".
func (r *reader) subject(ctx context.Context, v *view, name string) (subject, error) {
	if t := v.tasks[name]; t != nil {
		return subject{name: name, task: name, of: t}, nil
	}
	task, index, ok := names.ParseInstanceName(name)
	t := v.tasks[task]
	if !ok || t == nil {
		return subject{}, v.noTask(name)
	}
	switch count := int(t.task.GetCount()); {
	case t.task.Count == nil:
		return subject{}, notFound("task %s of run %s has no instances, or not yet", task, v.run.GetId())
	case index >= count:
		return subject{}, notFound("task %s of run %s has no instance %d; it has %d, and the first is %s", task, v.run.GetId(), index, count, names.InstanceName(task, 0))
	}
	found, err := r.instances(ctx, v, task, index, 1)
	if err != nil {
		return subject{}, err
	}
	if len(found) == 0 || int(found[0].instance.GetIndex()) != index {
		return subject{}, notFound("run %s does not tell about %s", v.run.GetId(), name)
	}
	return subject{name: name, task: task, of: t, one: found[0]}, nil
}

// shown is the subject as watchers see it, in the form of a task.
func (s subject) shown() *v1.Task {
	if s.one == nil {
		return s.of.brief
	}
	b := s.one.brief
	return &v1.Task{
		State: b.GetState(), Reason: b.GetReason(), Type: s.of.task.GetType(), Node: b.GetNode(), Attempt: b.GetAttempt(), Error: b.GetError(),
		Result: b.GetResult(), DependsOn: s.of.task.GetDependsOn(), AssignedAt: b.GetAssignedAt(), StartedAt: b.GetStartedAt(),
		CompletedAt: b.GetCompletedAt(), ScheduledAfter: b.GetScheduledAfter(), Suspicions: b.GetSuspicions(),
		CreatedAt: b.GetCreatedAt(), QueuedAt: b.GetQueuedAt(), CachedFrom: b.GetCachedFrom(), ChildRun: b.GetChildRun(), Held: b.GetHeld(),
	}
}

// claim is the number of the newest dispatch.
func (s subject) claim() int32 {
	if s.one == nil {
		return s.of.claim
	}
	return s.one.claim
}

// attempts are those that have ended.
func (s subject) attempts() []*v1.Attempt {
	if s.one == nil {
		return s.of.task.GetAttempts()
	}
	return s.one.instance.GetAttempts()
}
