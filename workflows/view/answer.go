package view

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/eventlog"
)

// runHeader returns the run without its tasks. Context and input are included only if they have changed since a revision.
func (s *Status) runHeader(since int64) *v1.Run {
	h := &v1.Run{
		Id: s.run.Id, Name: s.run.Name, State: s.run.State, Reason: s.run.Reason, Error: s.run.Error,
		CreatedAt: s.run.CreatedAt, CompletedAt: s.run.CompletedAt, Generation: s.run.Generation,
		Tasks: map[string]*v1.Task{}, Problem: s.run.Problem, SubmittedBy: s.run.SubmittedBy, Batch: s.run.Batch, Approval: s.run.Approval,
	}
	switch s.run.State {
	case v1.RunPaused:
		h.Error = s.pausedBy
	case v1.RunPending, v1.RunRunning:
		h.Error = cmp.Or(s.run.Error, s.slotWait)
	}
	if s.contextRevision > since {
		h.Context, h.Input = s.run.Context, s.run.Input
	}
	return h
}

// taskMessage returns the message for task i, or for an instance in the form of a task. For a task that fans out it holds the
// counts of the instances.
func (s *Status) taskMessage(i int) *v1.Task {
	e, def, own := &s.entries[i], s.definition(i), s.records.Of(i)
	t := &v1.Task{
		State: s.state(i), Reason: e.reason, Type: def.GetType(), Node: e.node, Attempt: e.attempt,
		Error: s.Text(i), Result: own.Result(), DependsOn: def.GetDependsOn(), AssignedAt: e.assignedAt,
		StartedAt: e.startedAt, CompletedAt: e.completedAt, ScheduledAfter: e.scheduledAfter,
		Attempts: e.attempts, Suspicions: own.Suspicions, Held: own.Held, QueuedAt: s.queuedTime(i), Notice: s.notice(i),
		CachedFrom: own.CachedFrom, ChildRun: own.ChildRun,
	}
	switch {
	case s.away(i) != "":
		t.Reason, t.Notice, t.CompletedAt = v1.ReasonNodeLost, s.away(i), timestamppb.New(own.AwayAt)
	case t.State == v1.TaskPaused:
		t.Reason = s.pausedReason(i)
	}
	if f := s.fanOut(i); f != nil {
		count := int32(f.total)
		t.Count, t.Counts = &count, maps.Clone(f.counts)
	}
	return t
}

// instanceMessage returns the message for instance i.
func (s *Status) instanceMessage(i int) *v1.Instance {
	e, own := &s.entries[i], s.records.Of(i)
	m := &v1.Instance{
		Index: e.number, State: s.state(i), Reason: e.reason, Node: e.node, Attempt: e.attempt,
		Error: s.Text(i), Result: own.Result(), AssignedAt: e.assignedAt, StartedAt: e.startedAt,
		CompletedAt: e.completedAt, ScheduledAfter: e.scheduledAfter, Attempts: e.attempts, Suspicions: own.Suspicions,
		Held: own.Held, CreatedAt: s.fanOut(int(e.group)).createdAt, QueuedAt: s.queuedTime(i), Notice: s.notice(i),
		CachedFrom: own.CachedFrom, ChildRun: own.ChildRun,
	}
	switch {
	case s.away(i) != "":
		m.Reason, m.Notice, m.CompletedAt = v1.ReasonNodeLost, s.away(i), timestamppb.New(own.AwayAt)
	case m.State == v1.TaskPaused:
		m.Reason = s.pausedReason(i)
	}
	if len(e.attempts) == 1 && v1.IsTaskTerminal(e.state) {
		m.Attempts = nil // the instance itself holds the same data
	}
	if e.lead >= 0 && e.state == v1.TaskAssigned {
		lead := e.lead
		m.Lead = &lead
	}
	return m
}

// Answer answers the status query with everything that has changed since a revision, oldest change first, up to a size limit. A
// task is included whenever one of its shown instances has changed. Answer does not modify the status.
func (s *Status) Answer(req *historyv1.StatusRequest) (*historyv1.StatusResponse, error) {
	limit := int(req.GetMaxBytes())
	if limit <= 0 || limit > eventlog.MaxAnswerBytes {
		limit = eventlog.MaxAnswerBytes
	}
	res := s.emptyAnswer(req.GetSince())
	i := -1
	for at := s.order.last; at >= 0 && s.entries[at].revision > req.GetSince(); at = s.order.before(at) {
		i = at
	}
	for size := 0; i >= 0; i = s.order.after(i) {
		add, bytes := s.part(res, i)
		if req.GetCheckpoints() {
			bytes += proto.Size(s.records.Of(i).Checkpoint)
		}
		if size += bytes; size > limit && len(res.Run.Tasks) > 0 {
			res.More = true
			return res, nil
		}
		add()
		if req.GetCheckpoints() {
			s.addCheckpoint(res, i)
		}
		res.Revision = s.entries[i].revision
	}
	res.Revision = s.revision
	return res, nil
}

// addCheckpoint adds the checkpoint of task i, if it has one and has not completed, to an answer.
func (s *Status) addCheckpoint(res *historyv1.StatusResponse, i int) {
	checkpoint := s.records.Of(i).Checkpoint
	if checkpoint == nil || v1.IsTaskSuccess(s.entries[i].state) {
		return
	}
	if res.Checkpoints == nil {
		res.Checkpoints = map[string]*historyv1.Checkpoint{}
	}
	res.Checkpoints[s.name(i)] = checkpoint
}

// part returns a function that adds task i to an answer, and the number of bytes that it adds.
func (s *Status) part(res *historyv1.StatusResponse, i int) (add func(), bytes int) {
	e, name, task := &s.entries[i], s.name(i), s.taskOf(i)
	bytes = len(name) + len(s.records.Of(i).ResultKey)
	group := res.Run.Tasks[s.graph.Name(task)]
	if group == nil {
		group = s.taskMessage(task)
		bytes += proto.Size(group)
	}
	var instance *v1.Instance
	if e.group >= 0 {
		instance = s.instanceMessage(i)
		bytes += proto.Size(instance)
	}
	return func() {
		res.Run.Tasks[s.graph.Name(task)] = group
		s.addKeys(res, task)
		if instance != nil {
			group.Instances = append(group.Instances, instance)
			s.addKeys(res, i)
		}
	}, bytes
}

// addKeys adds the record key and the claim of task i to an answer.
func (s *Status) addKeys(res *historyv1.StatusResponse, i int) {
	if key := s.records.Of(i).ResultKey; key != "" {
		res.Records[s.name(i)] = key
	}
	if claim := s.entries[i].claim; claim != 0 {
		res.Claims[s.name(i)] = claim
	}
}

// Final returns the whole status of a run that ends, with all instances, all evaluated foreach lists, and the checkpoints of what
// has not completed. The run itself is shown as open until End.
func (s *Status) Final(end *dag.End, now time.Time) *historyv1.StatusResponse {
	res := s.emptyAnswer(-1)
	for i := range s.entries {
		add, _ := s.part(res, i)
		add()
		s.addCheckpoint(res, i)
	}
	res.Items = map[string]*historyv1.Items{}
	for i := range s.graph.Len() {
		if items := s.records.Of(i).Items; items != nil {
			res.Items[s.name(i)] = items
		}
	}
	res.Revision = s.revision
	endRun(res.Run, end, now)
	return res
}

// emptyAnswer returns an answer without tasks. Context and input are included only if they have changed since a revision.
func (s *Status) emptyAnswer(since int64) *historyv1.StatusResponse {
	return &historyv1.StatusResponse{
		Run:       s.runHeader(since),
		Records:   map[string]string{},
		Claims:    map[string]int32{},
		TaskCount: int32(s.graph.Len()),
	}
}

// Instances answers the query for a page of a task's instances.
func (s *Status) Instances(req *historyv1.InstancesRequest) (*historyv1.InstancesResponse, error) {
	task, ok := s.graph.Index(req.GetTask())
	if !ok {
		return nil, fmt.Errorf("task %q: %w", req.GetTask(), dag.ErrUnknownTask)
	}
	items := s.records.ItemsOf(task, s.graph.Definition(task))
	res := &historyv1.InstancesResponse{Records: map[int32]string{}, Claims: map[int32]int32{}, Next: req.GetFrom(), Items: items}
	f := s.fanOut(task)
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
		m, key := s.instanceMessage(i), s.records.Of(i).ResultKey
		if size += proto.Size(m) + len(key); size > eventlog.MaxAnswerBytes && len(res.Instances) > 0 {
			break
		}
		res.Instances = append(res.Instances, m)
		if key != "" {
			res.Records[m.Index] = key
		}
		if claim := s.entries[i].claim; claim != 0 {
			res.Claims[m.Index] = claim
		}
		res.Next = m.Index + 1
	}
	return res, nil
}
