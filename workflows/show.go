package workflows

import (
	"cmp"
	"fmt"
	"maps"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
)

// maxAnswerBytes is what the tasks of one answer to a query may take. Temporal
// carries 2 MB, and as JSON a byte of output may take six.
const maxAnswerBytes = 256 << 10

// header is the run without tasks; context and input are there only when they
// have changed after a revision.
func (b *board) header(since int64) *v1.Run {
	h := &v1.Run{
		Id: b.run.Id, Name: b.run.Name, State: b.run.State, Reason: b.run.Reason, Error: b.run.Error,
		CreatedAt: b.run.CreatedAt, CompletedAt: b.run.CompletedAt, Generation: b.run.Generation,
		Tasks: map[string]*v1.Task{}, Problem: b.run.Problem, SubmittedBy: b.run.SubmittedBy, Batch: b.run.Batch,
	}
	if b.contextRevision > since {
		h.Context, h.Input = b.run.Context, b.run.Input
	}
	return h
}

// taskMessage is what the board shows of task i, an instance as if it were a task;
// of the instances of a task it holds the counts.
func (b *board) taskMessage(i int) *v1.Task {
	e, def := &b.entries[i], b.definition(i)
	t := &v1.Task{
		State: b.shown(i), Reason: e.reason, Type: def.GetType(), Node: e.node, Attempt: e.attempt,
		Error: b.textOf(i), Result: e.result, DependsOn: def.GetDependsOn(), AssignedAt: e.assignedAt,
		StartedAt: e.startedAt, CompletedAt: e.completedAt, ScheduledAfter: e.scheduledAfter,
		Attempts: e.attempts, Suspicions: e.suspicions, QueuedAt: b.shownQueuedAt(i),
	}
	if t.State == v1.TaskPaused {
		t.Reason = b.pausedFor(i)
	}
	if m := e.more; m != nil {
		t.Held, t.CachedFrom, t.ChildRun = m.held, m.cachedFrom, m.childRun
		if f := m.fan; f != nil {
			count := int32(f.total)
			t.Count, t.Counts = &count, maps.Clone(f.counts)
		}
	}
	return t
}

// shownQueuedAt returns when task i asked for a place for its newest attempt, or nil if it has not.
func (b *board) shownQueuedAt(i int) *timestamppb.Timestamp {
	if b.entries[i].queuedAt == 0 {
		return nil
	}
	return timestamppb.New(b.queuedAt(i))
}

// textOf is what went wrong with task i, or why it waits.
func (b *board) textOf(i int) string {
	e := &b.entries[i]
	switch {
	case b.shown(i) == v1.TaskPaused:
		return cmp.Or(b.suspended(i), e.why)
	case e.text == "" && e.state == v1.TaskQueued && b.waits != nil:
		return b.waits(i)
	}
	return e.text
}

// instanceMessage is what the board shows of instance i.
func (b *board) instanceMessage(i int) *v1.Instance {
	e := &b.entries[i]
	m := &v1.Instance{
		Index: e.number, State: b.shown(i), Reason: e.reason, Node: e.node, Attempt: e.attempt,
		Error: b.textOf(i), Result: e.result, AssignedAt: e.assignedAt, StartedAt: e.startedAt,
		CompletedAt: e.completedAt, ScheduledAfter: e.scheduledAfter, Attempts: e.attempts, Suspicions: e.suspicions,
		CreatedAt: b.fan(int(e.group)).createdAt, QueuedAt: b.shownQueuedAt(i),
	}
	if m.State == v1.TaskPaused {
		m.Reason = b.pausedFor(i)
	}
	if more := e.more; more != nil {
		m.Held, m.CachedFrom, m.ChildRun = more.held, more.cachedFrom, more.childRun
	}
	if len(e.attempts) == 1 && v1.IsTaskTerminal(e.state) {
		m.Attempts = nil // the instance says it itself
	}
	if e.lead >= 0 && e.state == v1.TaskAssigned {
		lead := e.lead
		m.Lead = &lead
	}
	return m
}

// answer answers the status query: what has changed after a revision, the
// oldest change first, up to a size. A task comes with those of its first
// instances that have changed. It changes nothing.
func (b *board) answer(req *v1.StatusRequest) (*v1.StatusResponse, error) {
	limit := int(req.GetMaxBytes())
	if limit <= 0 || limit > maxAnswerBytes {
		limit = maxAnswerBytes
	}
	res := b.empty(req.GetSince())
	i := -1
	for at := b.order.last; at >= 0 && b.entries[at].revision > req.GetSince(); at = b.order.before(at) {
		i = at
	}
	for size := 0; i >= 0; i = b.order.after(i) {
		add, bytes := b.part(res, i)
		if size += bytes; size > limit && len(res.Run.Tasks) > 0 {
			res.More = true
			return res, nil
		}
		add()
		res.Revision = b.entries[i].revision
	}
	res.Revision = b.revision
	return res, nil
}

// part is what an answer is to hold of task i: how to add it, and what it takes.
func (b *board) part(res *v1.StatusResponse, i int) (add func(), bytes int) {
	e, name, task := &b.entries[i], b.name(i), b.task(i)
	bytes = len(name) + len(e.record)
	group := res.Run.Tasks[b.graph.Name(task)]
	if group == nil {
		group = b.taskMessage(task)
		bytes += proto.Size(group)
	}
	var instance *v1.Instance
	if e.group >= 0 {
		instance = b.instanceMessage(i)
		bytes += proto.Size(instance)
	}
	return func() {
		res.Run.Tasks[b.graph.Name(task)] = group
		b.keys(res, task)
		if instance != nil {
			group.Instances = append(group.Instances, instance)
			b.keys(res, i)
		}
	}, bytes
}

// keys adds the record and the claim of task i to an answer.
func (b *board) keys(res *v1.StatusResponse, i int) {
	e := &b.entries[i]
	if e.record != "" {
		res.Records[b.name(i)] = e.record
	}
	if e.claim != 0 {
		res.Claims[b.name(i)] = e.claim
	}
}

// whole is everything that the board shows, with all instances.
func (b *board) whole() *v1.StatusResponse {
	res := b.empty(-1)
	for i := range b.entries {
		add, _ := b.part(res, i)
		add()
	}
	res.Revision = b.revision
	return res
}

func (b *board) empty(since int64) *v1.StatusResponse {
	return &v1.StatusResponse{
		Run:       b.header(since),
		Records:   map[string]string{},
		Claims:    map[string]int32{},
		TaskCount: int32(b.graph.Len()),
	}
}

// instances answers the query for a page of the instances of a task.
func (b *board) instances(req *v1.InstancesRequest) (*v1.InstancesResponse, error) {
	task, ok := b.graph.Index(req.GetTask())
	if !ok {
		return nil, fmt.Errorf("task %q: %w", req.GetTask(), dag.ErrUnknownTask)
	}
	res := &v1.InstancesResponse{Records: map[int32]string{}, Claims: map[int32]int32{}, Next: req.GetFrom(), Items: b.itemsFor(req.GetTask())}
	f := b.fan(task)
	if f == nil || f.count == 0 {
		return res, nil
	}
	limit := int(req.GetLimit())
	if limit <= 0 {
		limit = shownInstances
	}
	size := 0
	for number := max(int(req.GetFrom()), f.from); number < f.from+f.count && len(res.Instances) < limit; number++ {
		i := f.first + number - f.from
		m := b.instanceMessage(i)
		if size += proto.Size(m) + len(b.entries[i].record); size > maxAnswerBytes && len(res.Instances) > 0 {
			break
		}
		res.Instances = append(res.Instances, m)
		if record := b.entries[i].record; record != "" {
			res.Records[m.Index] = record
		}
		if claim := b.entries[i].claim; claim != 0 {
			res.Claims[m.Index] = claim
		}
		res.Next = m.Index + 1
	}
	return res, nil
}
