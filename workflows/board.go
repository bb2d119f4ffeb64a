package workflows

import (
	"container/list"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
)

// maxAnswerBytes is what the tasks of one answer to the status query may take.
// Temporal carries 2 MB, and as JSON a byte of output may take six.
const maxAnswerBytes = 256 << 10

// maxAttempts is how many attempts of a task are shown.
const maxAttempts = 100

// board is the run as people see it. Each change has a revision of its own, so
// that a watcher is told only what is new; it costs what has changed, not what
// the run holds. Messages that the board has given away are never changed again:
// a change replaces them.
type board struct {
	run             *v1.Run // without tasks
	graph           *dag.Graph
	log             *eventLog
	entries         []entry
	order           *list.List // task indices, the longest unchanged first
	revision        int64
	contextRevision int64
}

// entry is one task on the board.
type entry struct {
	task     *v1.Task
	claim    int32
	record   string // key of the whole result, empty when the board has all of it
	avoid    string // node that failed under the newest dispatch, or handed it back
	why      string // why the newest dispatch went to its node
	queuedAt time.Time
	refusals int32       // how often in a row a node had no room
	unheard  []int32     // attempts whose end nobody heard of, each once
	ended    *v1.Attempt // a dispatch that has ended, until the core has made something of it
	revision int64
	place    *list.Element
}

func newBoard(id string, in *v1.RunInput, graph *dag.Graph, created time.Time) *board {
	b := &board{
		run: &v1.Run{
			Id:         id,
			Name:       in.GetDefinition().GetName(),
			State:      "running",
			CreatedAt:  timestamppb.New(created),
			Context:    cloneStruct(in.GetDefinition().GetContext()),
			Input:      cloneStruct(in.GetInput()),
			Generation: in.GetGeneration(),
		},
		graph:   graph,
		log:     &eventLog{graph: graph},
		entries: make([]entry, graph.Len()),
		order:   list.New(),
	}
	for i := range b.entries {
		e := &b.entries[i]
		task := graph.Definition(i)
		e.task = &v1.Task{
			State:     dag.StatePending,
			Type:      task.GetType(),
			DependsOn: task.GetDependsOn(),
			Result:    nothingRan(),
		}
		e.place = b.order.PushBack(i)
		b.touch(i)
	}
	b.contextRevision = b.revision
	return b
}

// nothingRan is the result of a task of which nothing has run.
func nothingRan() *v1.TaskResult {
	return &v1.TaskResult{ExitCode: -1, Output: &structpb.Struct{}}
}

// touch gives task i the newest revision.
func (b *board) touch(i int) {
	b.revision++
	e := &b.entries[i]
	e.revision = b.revision
	b.order.MoveToBack(e.place)
}

// change replaces what the board shows of task i.
func (b *board) change(i int, f func(*v1.Task)) {
	e := &b.entries[i]
	old := e.task
	e.task = &v1.Task{
		State: old.State, Reason: old.Reason, Type: old.Type, Node: old.Node, Attempt: old.Attempt,
		Error: old.Error, Result: old.Result, DependsOn: old.DependsOn, AssignedAt: old.AssignedAt,
		StartedAt: old.StartedAt, CompletedAt: old.CompletedAt, ScheduledAfter: old.ScheduledAfter,
		Attempts: old.Attempts, Suspicions: old.Suspicions,
	}
	f(e.task)
	b.touch(i)
}

// update shows what the core knows of task i, and tells what has happened.
func (b *board) update(i int, rec dag.Record, now time.Time) {
	e := &b.entries[i]
	end := e.ended
	e.ended = nil
	b.tell(i, rec, end, now)
	e.claim = rec.Claim
	b.change(i, func(t *v1.Task) {
		if rec.State == dag.StateAssigned && t.State != dag.StateAssigned {
			t.AssignedAt, t.StartedAt, t.ScheduledAfter = timestamppb.New(now), nil, nil
		}
		switch {
		case !dag.Terminal(rec.State) && dag.Terminal(t.State): // it was put back, or waits for one that was
			t.AssignedAt, t.StartedAt, t.CompletedAt = nil, nil, nil
			e.queuedAt, e.refusals = time.Time{}, 0
		case dag.Terminal(rec.State) && end != nil && end.State != dag.StateMoved:
			t.CompletedAt = end.CompletedAt
		case dag.Terminal(rec.State) && t.CompletedAt == nil:
			t.CompletedAt = timestamppb.New(now)
		}
		t.State, t.Reason, t.Error = rec.State, rec.Reason, rec.Error
		t.Node, t.Attempt = rec.Node, rec.Attempt
	})
}

// queue notes when task i began to wait for a node; a claim that is placed
// again keeps its age.
func (b *board) queue(i int, now time.Time) {
	if e := &b.entries[i]; e.queuedAt.IsZero() {
		e.queuedAt = now
	}
}

func (b *board) queuedAt(i int) time.Time { return b.entries[i].queuedAt }

// avoid is the node that failed under the newest dispatch of task i, or handed
// it back; empty: none.
func (b *board) avoid(i int) string { return b.entries[i].avoid }

// refusals is how often in a row a node had no room for task i.
func (b *board) refusals(i int) int32 { return b.entries[i].refusals }

// unheard are the attempts of task i whose end nobody heard of.
func (b *board) unheard(i int) []int32 { return b.entries[i].unheard }

// place notes why the newest claim of task i goes to its node.
func (b *board) place(i int, why string) { b.entries[i].why = why }

// wait shows why task i has no node.
func (b *board) wait(i int, reason string) {
	b.change(i, func(t *v1.Task) { t.Error = reason })
}

// scheduleAfter shows when task i is tried again.
func (b *board) scheduleAfter(i int, at time.Time, now time.Time) {
	e := &b.entries[i]
	e.queuedAt = time.Time{}
	if e.task.GetScheduledAfter() == nil { // else an execution before has told it
		b.log.add(now, eventRetried, i, "", e.task.GetAttempt(), e.claim, "waits until "+at.UTC().Format(time.RFC3339Nano))
	}
	b.change(i, func(t *v1.Task) { t.ScheduledAfter = timestamppb.New(at) })
}

// attemptEnded shows what a dispatch of task i left; what the core makes of it
// follows with update. What the node does not say of it is as of now.
func (b *board) attemptEnded(i int, d dispatchEnd, now time.Time) {
	e := &b.entries[i]
	attempt := d.attempt(now)
	e.ended, e.avoid = attempt, ""
	if d.outcome != outcomeDone && d.outcome != "" {
		e.avoid = d.node
	}
	if e.refusals++; d.outcome != outcomeRefused {
		e.refusals = 0
	}
	if d.unheard && !slices.Contains(e.unheard, d.number) {
		e.unheard = append(e.unheard, d.number)
	}
	if d.ended.State == dag.StateMoved {
		if d.ended.Reason == reasonNotStarted {
			b.change(i, func(t *v1.Task) { t.Suspicions++ })
		}
		return
	}
	e.record = d.res.GetRecord()
	b.change(i, func(t *v1.Task) {
		t.Result = nothingRan()
		if d.res.GetResult() != nil {
			t.Result = d.res.GetResult()
		}
		if t.Result.Output == nil {
			t.Result.Output = &structpb.Struct{}
		}
		if attempt.AssignedAt != nil {
			t.AssignedAt = attempt.AssignedAt
		}
		t.StartedAt, t.CompletedAt = attempt.StartedAt, nil
		if t.Attempts = append(t.Attempts, attempt); len(t.Attempts) > maxAttempts {
			t.Attempts = t.Attempts[len(t.Attempts)-maxAttempts:]
		}
	})
}

// result is what the newest ended attempt of task i left, and the key of the
// record that has all of it, if the board has not.
func (b *board) result(i int) (*v1.TaskResult, string) {
	return b.entries[i].task.Result, b.entries[i].record
}

// setContext shows the context as it is now.
func (b *board) setContext(context *structpb.Struct) {
	b.run.Context = context
	b.revision++
	b.contextRevision = b.revision
}

// end shows how the run ended.
func (b *board) end(end *dag.End, now time.Time) {
	b.run.State, b.run.Reason, b.run.Error = end.State, end.Reason, end.Error
	b.run.CompletedAt = timestamppb.New(now)
}

// header is the run without tasks; context and input are there only when they
// have changed after a revision.
func (b *board) header(since int64) *v1.Run {
	h := &v1.Run{
		Id: b.run.Id, Name: b.run.Name, State: b.run.State, Reason: b.run.Reason, Error: b.run.Error,
		CreatedAt: b.run.CreatedAt, CompletedAt: b.run.CompletedAt, Generation: b.run.Generation,
		Tasks: map[string]*v1.Task{},
	}
	if b.contextRevision > since {
		h.Context, h.Input = b.run.Context, b.run.Input
	}
	return h
}

// answer answers the status query: what has changed after a revision, the
// oldest change first, up to a size. It changes nothing.
func (b *board) answer(req *v1.StatusRequest) (*v1.StatusResponse, error) {
	limit := int(req.GetMaxBytes())
	if limit <= 0 || limit > maxAnswerBytes {
		limit = maxAnswerBytes
	}
	first := b.order.Back()
	if first == nil || b.entries[first.Value.(int)].revision <= req.GetSince() {
		first = nil
	} else {
		for prev := first.Prev(); prev != nil && b.entries[prev.Value.(int)].revision > req.GetSince(); prev = prev.Prev() {
			first = prev
		}
	}
	res := b.empty(req.GetSince())
	for size := 0; first != nil; first = first.Next() {
		i := first.Value.(int)
		e := &b.entries[i]
		if size += proto.Size(e.task) + len(b.graph.Name(i)) + len(e.record); size > limit && len(res.Run.Tasks) > 0 {
			res.More = true
			return res, nil
		}
		b.put(res, i)
		res.Revision = e.revision
	}
	res.Revision = b.revision
	return res, nil
}

// whole is everything that the board shows.
func (b *board) whole() *v1.StatusResponse {
	res := b.empty(-1)
	for i := range b.entries {
		b.put(res, i)
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

func (b *board) put(res *v1.StatusResponse, i int) {
	e, name := &b.entries[i], b.graph.Name(i)
	res.Run.Tasks[name] = e.task
	if e.record != "" {
		res.Records[name] = e.record
	}
	if e.claim != 0 {
		res.Claims[name] = e.claim
	}
}
