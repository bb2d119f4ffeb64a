package gateway

import (
	"maps"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// instanceView is one instance of a task that has fanned out, in a view.
type instanceView struct {
	instance *v1.Instance // as the workflow knows it
	brief    *v1.Instance // as watchers see it
	claim    int32
	record   string
	version  int64
}

// instance is the one of a number; nil: the workflow has not told it.
func (t *taskView) instance(index int) *instanceView {
	if index >= len(t.instances) {
		return nil
	}
	return t.instances[index]
}

// learn takes in what the workflow says of an instance.
func (t *taskView) learn(i *v1.Instance, claims map[string]int32, records map[string]string, task string) {
	index := int(i.GetIndex())
	for len(t.instances) <= index {
		t.instances = append(t.instances, nil)
	}
	if t.instances[index] == nil {
		t.instances[index] = &instanceView{}
	}
	name := names.InstanceName(task, index)
	known := t.instances[index]
	known.instance, known.claim, known.record = i, claims[name], records[name]
}

// shown is the instance without streams, output and old attempts, and running if it is.
func (i *instanceView) shown(t *taskView, task string, running map[string]runningAttempt) *v1.Instance {
	b := briefInstance(i.instance)
	if !mayRun(b.State) {
		return b
	}
	if r, ok := i.runs(t, task, running); ok {
		b.State, b.AssignedAt, b.StartedAt = shownRunning(b.State), r.assigned, r.started
	}
	return b
}

// runs tells whether the process of an instance that is assigned has been started. Those of a batch run one after the
// other; that one has ended the workflow learns with the whole batch, and until then it counts as running.
func (i *instanceView) runs(t *taskView, task string, running map[string]runningAttempt) (runningAttempt, bool) {
	if i.instance.Lead == nil {
		r, ok := running[names.AttemptID(names.InstanceName(task, int(i.instance.GetIndex())), i.claim)]
		return r, ok
	}
	lead := int(i.instance.GetLead())
	if first := t.instance(lead); first == nil || first.instance.Lead == nil {
		return runningAttempt{}, false
	}
	r, ok := running[names.AttemptID(names.InstanceName(task, lead), t.instances[lead].claim)]
	if !ok {
		return r, false
	}
	before := 0
	for _, other := range t.instances[min(lead, int(i.instance.GetIndex())):i.instance.GetIndex()] {
		if other != nil && other.instance.Lead != nil && int(other.instance.GetLead()) == lead {
			before++
		}
	}
	return r, before <= r.ended
}

// briefInstance is an instance without streams, output and old attempts.
func briefInstance(i *v1.Instance) *v1.Instance {
	return &v1.Instance{
		Index: i.GetIndex(), State: i.GetState(), Reason: i.GetReason(), Node: i.GetNode(), Attempt: i.GetAttempt(),
		Error: i.GetError(), Result: briefResult(i.GetResult()), AssignedAt: i.GetAssignedAt(), StartedAt: i.GetStartedAt(),
		CompletedAt: i.GetCompletedAt(), ScheduledAfter: i.GetScheduledAfter(), Suspicions: i.GetSuspicions(),
		CachedFrom: i.GetCachedFrom(), ChildRun: i.GetChildRun(), Held: i.GetHeld(),
		CreatedAt: i.GetCreatedAt(), QueuedAt: i.GetQueuedAt(), DeadLetteredAt: deadLetteredAt(i),
	}
}

// counts are the instances of a task by state, as the workflow counts them, but for those that run: that it does not
// know.
func (t *taskView) counts(task string, running map[string]runningAttempt) map[string]int32 {
	if t.task.Count == nil {
		return nil
	}
	counts := maps.Clone(t.task.GetCounts())
	run := int32(0)
	for _, i := range t.instances {
		if i != nil && i.brief.GetState() == v1.TaskRunning && i.instance.GetState() == v1.TaskAssigned {
			run++
		}
	}
	if len(t.instances) < int(t.task.GetCount()) {
		for id := range running { // of those that are not told one by one
			name, _, _ := names.ParseAttemptID(id)
			if of, index, ok := names.ParseInstanceName(name); ok && of == task && index >= len(t.instances) {
				run++
			}
		}
	}
	if run = min(run, counts[v1.TaskAssigned]); run == 0 {
		return counts
	}
	counts[v1.TaskRunning] += run
	if counts[v1.TaskAssigned] -= run; counts[v1.TaskAssigned] == 0 {
		delete(counts, v1.TaskAssigned)
	}
	return counts
}

// shallow is a copy of a task without its instances; what it refers to is shared.
func shallow(t *v1.Task) *v1.Task {
	return &v1.Task{
		State: t.State, Reason: t.Reason, Type: t.Type, Node: t.Node, Attempt: t.Attempt, Error: t.Error, Result: t.Result,
		DependsOn: t.DependsOn, AssignedAt: t.AssignedAt, StartedAt: t.StartedAt, CompletedAt: t.CompletedAt,
		ScheduledAfter: t.ScheduledAfter, Attempts: t.Attempts, Suspicions: t.Suspicions, Count: t.Count, Counts: t.Counts,
		CachedFrom: t.CachedFrom, ChildRun: t.ChildRun, Held: t.Held, QueuedAt: t.QueuedAt,
	}
}
