package workflows

import (
	"container/list"
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

// board is the run as people see it. Each change has a revision of its own, so
// that a watcher is told only what is new; it costs what has changed, not what
// the run holds. Messages that the board has given away are never changed again:
// a change replaces them.
type board struct {
	run             *v1.Run // without tasks
	graph           *dag.Graph
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
	lostOn   string // node that failed under the newest attempt
	queuedAt time.Time
	revision int64
	place    *list.Element
}

func newBoard(id string, in *v1.RunInput, graph *dag.Graph, created time.Time) *board {
	b := &board{
		run: &v1.Run{
			Id:        id,
			Name:      in.GetDefinition().GetName(),
			State:     "running",
			CreatedAt: timestamppb.New(created),
			Context:   cloneStruct(in.GetDefinition().GetContext()),
			Input:     cloneStruct(in.GetInput()),
		},
		graph:   graph,
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
	}
	f(e.task)
	b.touch(i)
}

// update shows what the core knows of task i.
func (b *board) update(i int, rec dag.Record, now time.Time) {
	e := &b.entries[i]
	e.claim = rec.Claim
	b.change(i, func(t *v1.Task) {
		if rec.State == dag.StateAssigned && t.State != dag.StateAssigned {
			t.AssignedAt, t.StartedAt, t.ScheduledAfter = timestamppb.New(now), nil, nil
		}
		if dag.Terminal(rec.State) && t.CompletedAt == nil {
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

// lostOn is the node that failed under the newest attempt of task i, if one did.
func (b *board) lostOn(i int) string { return b.entries[i].lostOn }

// wait shows why task i has no node.
func (b *board) wait(i int, reason string) {
	b.change(i, func(t *v1.Task) { t.Error = reason })
}

// scheduleAfter shows when task i is tried again.
func (b *board) scheduleAfter(i int, at time.Time) {
	b.entries[i].queuedAt = time.Time{}
	b.change(i, func(t *v1.Task) { t.ScheduledAfter = timestamppb.New(at) })
}

// attemptEnded shows what an attempt of task i left; what the core makes of it
// follows with update.
func (b *board) attemptEnded(i int, node, state string, res *v1.ExecuteResponse) {
	e := &b.entries[i]
	e.lostOn = ""
	if state == dag.StateMoved || state == dag.StateLost {
		e.lostOn = node
	}
	if state == dag.StateMoved {
		return
	}
	e.record = res.GetRecord()
	b.change(i, func(t *v1.Task) {
		t.Result = nothingRan()
		if res.GetResult() != nil {
			t.Result = res.GetResult()
		}
		if t.Result.Output == nil {
			t.Result.Output = &structpb.Struct{}
		}
		t.StartedAt = res.GetStartedAt()
		t.CompletedAt = nil
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
