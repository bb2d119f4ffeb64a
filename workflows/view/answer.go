package view

import (
	"cmp"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/phrase"
)

// runHeader returns the run without its tasks. Context and input are included only if they have changed since a revision.
func (s *Status) runHeader(since int64) *v1.Run {
	h := &v1.Run{
		Id: s.run.Id, Name: s.run.Name, State: s.run.State, Reason: s.run.Reason, Error: s.run.Error,
		CreatedAt: s.run.CreatedAt, CompletedAt: s.run.CompletedAt, Generation: s.run.Generation,
		Tasks: map[string]*v1.Task{}, Problem: s.run.Problem, SubmittedBy: s.run.SubmittedBy, Batch: s.run.Batch, Source: s.run.Source, Approval: s.run.Approval,
	}
	switch s.run.State {
	case v1.RunPaused:
		h.Error = s.pausedBy
	case v1.RunPending, v1.RunRunning:
		h.Error = cmp.Or(s.run.Error, s.slotWait)
		if s.core.IsEnding() {
			h.Error = phrase.Ending(cmp.Or(s.core.Aborted().Error, "the run was cancelled"))
		}
	}
	if s.core.InFinally() && !s.core.IsEnding() && !v1.IsRunTerminal(s.run.State) {
		h.Error = phrase.InFinally(s.core.TasksEnd().State, s.core.TasksEnd().Error)
		if s.run.State == v1.RunPaused {
			h.Error = phrase.Because(h.Error, s.pausedBy)
		}
	}
	if s.contextRevision > since {
		h.Context, h.Input = s.run.Context, s.run.Input
	}
	return h
}

// shownInstances is the most instances of a task that the status shows; the query "instances" shows all.
const shownInstances = 1000

// text returns what went wrong with task i, or why it waits.
func (s *Status) text(i int) string {
	own, rec := s.records.Of(i), s.core.Task(i)
	switch shown := s.units.Shown(i); {
	case s.away(i) != "":
		return s.away(i)
	case shown == v1.TaskPaused && own.Suspended != "":
		return own.Suspended
	case shown == v1.TaskPaused:
		return s.units.ApprovalOf(i).Text()
	case v1.IsTaskWaiting(rec.State):
		return s.units.WaitText(i)
	case v1.IsTaskDispatched(rec.State):
		return cmp.Or(own.Wait, s.entries[i].whyAgain(), rec.Error)
	}
	return cmp.Or(own.Wait, rec.Error)
}

// away returns why task i is lost until its node is back, or "" if it is not lost.
func (s *Status) away(i int) string {
	if v1.IsTaskDispatched(s.core.Task(i).State) {
		return s.records.Of(i).Away
	}
	return ""
}

// taskMessage returns the message for task i, or for an instance in the form of a task. For a task that fans out it holds the
// counts of the instances.
func (s *Status) taskMessage(i int) *v1.Task {
	e, rec, def, own := &s.entries[i], s.core.Task(i), s.core.Definition(i), s.records.Of(i)
	t := &v1.Task{
		State: s.units.Shown(i), Reason: rec.Reason, Type: def.GetType(), Node: rec.Node, Attempt: rec.Attempt,
		Error: s.text(i), Result: own.Result(), DependsOn: def.GetDependsOn(), AssignedAt: e.assignedAt,
		StartedAt: e.startedAt, CompletedAt: e.completedAt, ScheduledAfter: e.scheduledAfter,
		Attempts: e.attempts, Suspicions: own.Suspicions, Held: own.Held, CachedFrom: own.CachedFrom, ChildRun: own.ChildRun,
		Finally: s.core.IsFinally(i),
	}
	if !own.QueuedAt.IsZero() {
		t.QueuedAt = timestamppb.New(own.QueuedAt)
	}
	if !own.LateSince.IsZero() {
		t.LateSince = timestamppb.New(own.LateSince)
	}
	if rec.State == v1.TaskAssigned {
		t.Notice = own.Silent
	}
	switch {
	case s.away(i) != "":
		t.Reason, t.Notice, t.CompletedAt = v1.ReasonNodeLost, s.away(i), timestamppb.New(own.AwayAt)
	case t.State == v1.TaskPaused && own.Suspended != "":
		t.Reason = v1.ReasonSuspended
	case t.State == v1.TaskPaused:
		t.Reason = v1.ReasonApproval
	}
	if n, ok := s.units.InstanceCount(i); ok {
		count := int32(n)
		t.Count, t.Counts = &count, s.units.InstanceCounts(i)
	}
	return t
}

// instanceMessage returns the message for instance i.
func (s *Status) instanceMessage(i int) *v1.Instance {
	t := s.taskMessage(i)
	m := &v1.Instance{
		Index: int32(s.core.Number(i)), State: t.State, Reason: t.Reason, Node: t.Node, Attempt: t.Attempt, Error: t.Error, Result: t.Result,
		AssignedAt: t.AssignedAt, StartedAt: t.StartedAt, CompletedAt: t.CompletedAt, ScheduledAfter: t.ScheduledAfter,
		Attempts: t.Attempts, Suspicions: t.Suspicions, Held: t.Held, CreatedAt: s.entries[s.core.Group(i)].expandedAt,
		QueuedAt: t.QueuedAt, Notice: t.Notice, CachedFrom: t.CachedFrom, ChildRun: t.ChildRun,
	}
	state := s.core.Task(i).State
	if len(m.Attempts) == 1 && m.Attempts[0].GetState() != v1.AttemptMoved && v1.IsTaskTerminal(state) {
		m.Attempts = nil // the instance itself holds the same data
	}
	if u := s.units.UnitOf(i); u != nil && len(u.Members) > 1 && state == v1.TaskAssigned {
		lead := int32(s.core.Number(u.Members[0]))
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
	if checkpoint == nil || v1.IsTaskSuccess(s.core.Task(i).State) {
		return
	}
	if res.Checkpoints == nil {
		res.Checkpoints = map[string]*historyv1.Checkpoint{}
	}
	res.Checkpoints[s.core.Name(i)] = checkpoint
}

// part returns a function that adds task i to an answer, and the number of bytes that it adds.
func (s *Status) part(res *historyv1.StatusResponse, i int) (add func(), bytes int) {
	name, task := s.core.Name(i), s.core.TaskOf(i)
	bytes = len(name) + len(s.records.Of(i).ResultKey)
	group := res.Run.Tasks[s.graph.Name(task)]
	if group == nil {
		group = s.taskMessage(task)
		bytes += proto.Size(group)
	}
	var instance *v1.Instance
	if i != task {
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
		res.Records[s.core.Name(i)] = key
	}
	if claim := s.core.Task(i).Claim; claim != 0 {
		res.Claims[s.core.Name(i)] = claim
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
			res.Items[s.core.Name(i)] = items
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
	first, count := s.core.Instances(task)
	if count == 0 {
		return res, nil
	}
	limit := int(req.GetLimit())
	if limit <= 0 {
		limit = shownInstances
	}
	size, skipped := 0, max(0, int(req.GetFrom())-s.core.Number(first))
	for i := first + skipped; i < first+count && len(res.Instances) < limit; i++ {
		m, key := s.instanceMessage(i), s.records.Of(i).ResultKey
		if size += proto.Size(m) + len(key); size > eventlog.MaxAnswerBytes && len(res.Instances) > 0 {
			break
		}
		res.Instances = append(res.Instances, m)
		if key != "" {
			res.Records[m.Index] = key
		}
		if claim := s.core.Task(i).Claim; claim != 0 {
			res.Claims[m.Index] = claim
		}
		res.Next = m.Index + 1
	}
	return res, nil
}
