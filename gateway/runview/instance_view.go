package runview

import (
	"fmt"
	"maps"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// InstanceView is one instance of a fanned-out task in a view.
type InstanceView struct {
	Instance *v1.Instance // as the workflow reports it
	Brief    *v1.Instance // as watchers see it
	Claim    int32
	Record   string
	// LeaseUntil has the meaning of TaskView.LeaseUntil.
	LeaseUntil *timestamppb.Timestamp
	version    int64
}

// instance returns the instance with the given number, or nil if the workflow has not reported it.
func (t *TaskView) instance(index int) *InstanceView {
	if index >= len(t.Instances) {
		return nil
	}
	return t.Instances[index]
}

// updateInstance applies the workflow's report of an instance.
func (t *TaskView) updateInstance(i *v1.Instance, claims map[string]int32, records map[string]string, task string) {
	index := int(i.GetIndex())
	for len(t.Instances) <= index {
		t.Instances = append(t.Instances, nil)
	}
	if t.Instances[index] == nil {
		t.Instances[index] = &InstanceView{}
	}
	name := names.InstanceName(task, index)
	known := t.Instances[index]
	known.Instance, known.Claim, known.Record = i, claims[name], records[name]
}

// show sets what watchers see of the instance: the workflow's report, and its running attempt if there is one.
func (i *InstanceView) show(t *TaskView, task string, running map[string]RunningAttempt) {
	i.Brief, i.LeaseUntil = BriefInstance(i.Instance), nil
	if r, ok := i.findAttempt(t, task, running); ok {
		i.showAttempt(r)
	}
}

// showAttempt shows the running attempt of the instance, which is assigned or paused.
func (i *InstanceView) showAttempt(r RunningAttempt) {
	b := i.Brief
	b.State, b.AssignedAt, b.StartedAt, b.Notice, b.Workload = shownRunning(b.State), r.assigned, r.Started, r.notice(b.Node), r.workload
	i.LeaseUntil = r.leaseUntil
}

// findAttempt returns the attempt that runs an assigned instance, and reports whether there is one. The instances of a
// batch run one after the other. The workflow learns that an instance has ended only with the whole batch; until then the
// instance counts as running.
func (i *InstanceView) findAttempt(t *TaskView, task string, running map[string]RunningAttempt) (RunningAttempt, bool) {
	if !mayRun(i.Instance.GetState()) {
		return RunningAttempt{}, false
	}
	if i.Instance.Lead == nil {
		r, ok := running[names.AttemptID(names.InstanceName(task, int(i.Instance.GetIndex())), i.Claim)]
		return r, ok
	}
	lead := int(i.Instance.GetLead())
	if first := t.instance(lead); first == nil || first.Instance.Lead == nil {
		return RunningAttempt{}, false
	}
	r, ok := running[names.AttemptID(names.InstanceName(task, lead), t.Instances[lead].Claim)]
	if !ok {
		return r, false
	}
	before := 0
	for _, other := range t.Instances[min(lead, int(i.Instance.GetIndex())):i.Instance.GetIndex()] {
		if other != nil && other.Instance.Lead != nil && int(other.Instance.GetLead()) == lead {
			before++
		}
	}
	if before > r.ended {
		return RunningAttempt{}, false
	}
	if before < r.ended {
		r.workload = nil // that of a later instance
	}
	return r, true
}

// BriefInstance returns a copy of an instance without streams, output and old attempts.
func BriefInstance(i *v1.Instance) *v1.Instance {
	return &v1.Instance{
		Index: i.GetIndex(), State: i.GetState(), Reason: i.GetReason(), Node: i.GetNode(), Attempt: i.GetAttempt(),
		Error: i.GetError(), Result: briefResult(i.GetResult()), AssignedAt: i.GetAssignedAt(), StartedAt: i.GetStartedAt(),
		CompletedAt: i.GetCompletedAt(), ScheduledAfter: i.GetScheduledAfter(), Suspicions: i.GetSuspicions(),
		CachedFrom: i.GetCachedFrom(), ChildRun: i.GetChildRun(), Held: i.GetHeld(),
		CreatedAt: i.GetCreatedAt(), QueuedAt: i.GetQueuedAt(), DeadLetteredAt: DeadLetteredAt(i), Notice: i.GetNotice(),
	}
}

// counts returns the number of instances in each state. It corrects the workflow's counts by the running ones, which only
// heartbeats report.
func (t *TaskView) counts(task string, running map[string]RunningAttempt) map[string]int32 {
	if t.Task.Count == nil {
		return nil
	}
	counts := maps.Clone(t.Task.GetCounts())
	run := int32(0)
	for _, i := range t.Instances {
		if i != nil && i.Brief.GetState() == v1.TaskRunning && i.Instance.GetState() == v1.TaskAssigned {
			run++
		}
	}
	if len(t.Instances) < int(t.Task.GetCount()) {
		for id := range running { // of instances that are not listed individually
			name, _, _ := names.ParseAttemptID(id)
			if of, index, ok := names.ParseInstanceName(name); ok && of == task && index >= len(t.Instances) {
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

// instanceNotice returns the notice of the first listed instance that has one, with the name of the instance and the number of
// further ones, or "" if no instance of the task is held up, or if the task has ended.
func (t *TaskView) instanceNotice(task string) string {
	if v1.IsTaskTerminal(t.Task.GetState()) {
		return ""
	}
	first, more := "", 0
	for index, i := range t.Instances {
		switch {
		case i == nil || i.Brief.GetNotice() == "":
		case first == "":
			first = names.InstanceName(task, index) + ": " + i.Brief.GetNotice()
		default:
			more++
		}
	}
	switch more {
	case 0:
		return first
	case 1:
		return first + "; and 1 more is held up"
	}
	return fmt.Sprintf("%s; and %d more are held up", first, more)
}

// CopyWithoutInstances returns a shallow copy of a task without its instances.
func CopyWithoutInstances(t *v1.Task) *v1.Task {
	return &v1.Task{
		State: t.State, Reason: t.Reason, Type: t.Type, Node: t.Node, Attempt: t.Attempt, Error: t.Error, Result: t.Result,
		DependsOn: t.DependsOn, AssignedAt: t.AssignedAt, StartedAt: t.StartedAt, CompletedAt: t.CompletedAt,
		ScheduledAfter: t.ScheduledAfter, Attempts: t.Attempts, Suspicions: t.Suspicions, Count: t.Count, Counts: t.Counts,
		CachedFrom: t.CachedFrom, ChildRun: t.ChildRun, Held: t.Held, QueuedAt: t.QueuedAt,
		Notice: t.Notice, LateSince: t.LateSince,
		Finally: t.Finally,
	}
}
