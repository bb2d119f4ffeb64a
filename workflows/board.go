package workflows

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/names"
)

const (
	// maxAttempts is how many attempts of a task are shown.
	maxAttempts = 100
	// shownInstances is how many instances of a task the status shows; the query
	// "instances" shows all.
	shownInstances = 1000
)

// board is the run as people see it. Each change has a revision of its own, so
// that a watcher is told only what is new; it costs what has changed, not what
// the run holds. Like the core it has the tasks first and then the instances, by
// the same indices. Messages are made when somebody asks; what they share with
// the board is never changed, only replaced.
type board struct {
	run             *v1.Run // without tasks
	graph           *dag.Graph
	log             *eventLog
	entries         []entry
	order           order
	revision        int64
	contextRevision int64
	busyGroups      int              // tasks whose instances are under way
	waits           func(int) string // why a task waits that has not asked for a node; nil: nothing does
}

// entry is one task or instance on the board.
type entry struct {
	group, number int32 // task that it is an instance of, and its number; -1: it is a task

	state, reason, text, node string // as the core says; text is what went wrong
	attempt, claim            int32

	result                                             *v1.TaskResult
	assignedAt, startedAt, completedAt, scheduledAfter *timestamppb.Timestamp
	attempts                                           []*v1.Attempt
	suspicions                                         int32
	lead                                               int32 // number of the first instance of its batch, -1: it goes by itself

	record     string // key of the whole result, empty when the board has all of it
	avoid      string // node that failed under the newest dispatch, or handed it back
	why        string // why the newest dispatch went to its node; of an approval: what is asked
	place      []fact // of the newest dispatch, until the event of its assignment is logged
	queuedAt   int64  // when it asked for a place for its newest attempt, in nanoseconds since 1970; 0: it has not
	refusals   int32  // how often in a row a node had no room
	unheard    []int32
	ended      *v1.Attempt // a dispatch that has ended, until the core has made something of it
	checkpoint *v1.Checkpoint
	more       *more // what few tasks have; nil: nothing of it

	revision int64
}

// more is what only few tasks have.
type more struct {
	held       bool   // by a person
	suspended  string // by a person, and why; empty: it is not
	cachedFrom string // run whose result was reused
	cacheKey   string // under which the result is to be kept
	uncached   string // why its result is kept under none, although it has a cache
	childRun   string
	left       []string  // keys of records that attempts of generations before may have left
	items      *v1.Items // of a foreach whose list was evaluated
	fan        *fan      // nil: it has no instances, or not yet
	steeredBy  string    // who put it back, cancelled or killed it, until the event of that is logged; empty: not known
	readyAt    time.Time // when it could first start; zero: not known
}

// fan is what is known of the instances of a task.
type fan struct {
	first, from, count int                    // index of the first, its number, how many there are
	total              int                    // instances of the task; more than count in a part of one
	createdAt          *timestamppb.Timestamp // nil until its task runs
	counts             map[string]int32
	view               *v1.FanOutView // as others see it; nil until somebody has asked, and before its end
}

func newBoard(id string, in *v1.RunInput, graph *dag.Graph, created time.Time) *board {
	b := &board{
		run: &v1.Run{
			Id:         id,
			Name:       in.GetDefinition().GetName(),
			State:      v1.RunRunning,
			CreatedAt:  timestamppb.New(created),
			Context:    cloneStruct(in.GetDefinition().GetContext()),
			Input:      cloneStruct(in.GetInput()),
			Generation: in.GetGeneration(),

			SubmittedBy: in.GetBy(),
			Batch:       in.GetBatch(),
		},
		graph:   graph,
		entries: make([]entry, 0, graph.Len()),
		order:   newOrder(),
	}
	b.log = &eventLog{name: b.name, id: func(number int64) string {
		part := in.GetPart()
		if part == nil {
			return names.EventID(in.GetGeneration(), "", number)
		}
		return names.EventID(part.GetGeneration(), names.InstanceName(part.GetTask(), int(part.GetFrom())), number)
	}}
	for range graph.Len() {
		b.add(-1, -1)
	}
	b.contextRevision = b.revision
	return b
}

// add puts another task, or an instance of one, on the board.
func (b *board) add(group, number int) {
	i := len(b.entries)
	b.entries = append(b.entries, entry{
		group: int32(group), number: int32(number), lead: -1, state: v1.TaskPending, result: nothingRan,
	})
	if group >= 0 {
		f := b.fan(group)
		if f == nil {
			f = &fan{first: i, from: number, counts: map[string]int32{}}
			b.rare(group).fan = f
		}
		f.count++
		f.total = max(f.total, f.count)
		f.counts[v1.TaskPending]++
	}
	b.touch(i)
}

// grow puts the instances on the board that the core has and the board has not.
func (b *board) grow(core *dag.State) {
	for i := len(b.entries); i < core.Len(); i++ {
		b.add(core.Group(i), core.Number(i))
	}
}

// nothingRan is the result of a task of which nothing has run, and nothingLeft
// that of one that has completed without a word. They are never changed.
var (
	nothingRan  = &v1.TaskResult{ExitCode: -1, Output: &structpb.Struct{}}
	nothingLeft = &v1.TaskResult{Output: &structpb.Struct{}}
)

// task is the task that i is, or is an instance of.
func (b *board) task(i int) int {
	if g := b.entries[i].group; g >= 0 {
		return int(g)
	}
	return i
}

// name is the name of a task, or of an instance, such as "each[3]".
func (b *board) name(i int) string {
	e := &b.entries[i]
	if e.group < 0 {
		return b.graph.Name(i)
	}
	return names.InstanceName(b.graph.Name(int(e.group)), int(e.number))
}

func (b *board) definition(i int) *v1.TaskDefinition { return b.graph.Definition(b.task(i)) }

// rare is what few tasks have of task i, to be changed.
func (b *board) rare(i int) *more {
	e := &b.entries[i]
	if e.more == nil {
		e.more = &more{}
	}
	return e.more
}

// fan is what is known of the instances of task i; nil: it has none yet.
func (b *board) fan(i int) *fan {
	if m := b.entries[i].more; m != nil {
		return m.fan
	}
	return nil
}

// touch gives task i the newest revision. An instance that is not shown changes
// the counts of its task.
func (b *board) touch(i int) {
	if e := &b.entries[i]; e.group >= 0 && e.number >= shownInstances {
		i = int(e.group)
	}
	b.revision++
	b.entries[i].revision = b.revision
	b.order.toEnd(i)
}

// change changes what the board shows of task i.
func (b *board) change(i int, f func(*entry)) {
	f(&b.entries[i])
	b.touch(i)
}

// update shows what the core knows of task i, and tells what has happened.
func (b *board) update(i int, rec dag.Record, now time.Time) {
	e := &b.entries[i]
	end := e.ended
	e.ended = nil
	b.tell(i, rec, end, now)
	e.claim = rec.Claim
	before := b.shown(i)
	if rec.State == v1.TaskAssigned && e.state != v1.TaskAssigned {
		e.assignedAt, e.startedAt, e.scheduledAfter = timestamppb.New(now), nil, nil
	}
	switch {
	case !v1.IsTaskTerminal(rec.State) && v1.IsTaskTerminal(e.state): // it was put back, or waits for one that was
		b.forget(i)
	case v1.IsTaskTerminal(rec.State) && end != nil && end.State != v1.AttemptMoved:
		e.completedAt = end.CompletedAt
	case v1.IsTaskTerminal(rec.State) && e.completedAt == nil:
		e.completedAt = timestamppb.New(now)
	}
	b.countGroup(i, e.state, rec, now)
	e.state, e.reason, e.text = rec.State, rec.Reason, rec.Error
	e.node, e.attempt = rec.Node, rec.Attempt
	b.recount(i, before)
	b.touch(i)
}

// forget takes back what the board shows of how task i ended.
func (b *board) forget(i int) {
	e := &b.entries[i]
	e.assignedAt, e.startedAt, e.completedAt = nil, nil, nil
	e.queuedAt, e.refusals = 0, 0
	if m := e.more; m != nil {
		m.cachedFrom, m.cacheKey, m.uncached, m.childRun, m.readyAt, m.steeredBy = "", "", "", "", time.Time{}, ""
		if m.fan != nil {
			m.fan.view = nil
		}
	}
	if e.group >= 0 {
		if f := b.fan(int(e.group)); f != nil {
			f.view = nil
		}
	}
}

// countGroup notes tasks whose instances begin or end.
func (b *board) countGroup(i int, was string, rec dag.Record, now time.Time) {
	if b.entries[i].group >= 0 || !b.graph.FansOut(i) {
		return
	}
	if was == v1.TaskRunning {
		b.busyGroups--
	}
	if v1.IsTaskTerminal(rec.State) {
		b.entries[i].result = &v1.TaskResult{ExitCode: rec.ExitCode, Output: nothingRan.Output}
	}
	switch {
	case rec.State == v1.TaskRunning:
		b.busyGroups++
		// What ended it before, if anything did, holds no more.
		if f := b.fan(i); f != nil {
			f.view = nil
			f.createdAt = cmp.Or(f.createdAt, timestamppb.New(now))
		}
		if e := &b.entries[i]; e.startedAt == nil || was != v1.TaskRunning {
			e.startedAt = timestamppb.New(now)
		}
	case rec.State == v1.TaskCompleted && b.fan(i) == nil: // over nothing
		b.rare(i).fan = &fan{counts: map[string]int32{}}
		b.entries[i].startedAt = timestamppb.New(now)
	}
}

// shown is the state of task i as people see it: one that waits for a person is paused,
// and so is one that a person has suspended.
func (b *board) shown(i int) string {
	e := &b.entries[i]
	switch {
	case e.state == v1.TaskAssigned && b.definition(i).GetType() == v1.TypeApproval:
		return v1.TaskPaused
	case e.more != nil && e.more.suspended != "" && v1.IsTaskDispatched(e.state):
		return v1.TaskPaused
	}
	return e.state
}

// pausedFor is the reason of a task that is shown as paused.
func (b *board) pausedFor(i int) string {
	if b.suspended(i) != "" {
		return v1.ReasonSuspended
	}
	return v1.ReasonApproval
}

// recount counts instance i, which was shown in another state, for its task.
func (b *board) recount(i int, was string) {
	g := b.entries[i].group
	if is := b.shown(i); g >= 0 && is != was {
		counts := b.fan(int(g)).counts
		if counts[was]--; counts[was] == 0 {
			delete(counts, was)
		}
		counts[is]++
	}
}

// queue notes when task i began to wait for a node; a claim that is placed
// again keeps its age.
func (b *board) queue(i int, now time.Time) {
	if e := &b.entries[i]; e.queuedAt == 0 {
		e.queuedAt = now.UnixNano()
	}
}

func (b *board) queuedAt(i int) time.Time { return time.Unix(0, b.entries[i].queuedAt) }

// avoid is the node that failed under the newest dispatch of task i, or handed
// it back; empty: none.
func (b *board) avoid(i int) string { return b.entries[i].avoid }

// refusals is how often in a row a node had no room for task i.
func (b *board) refusals(i int) int32 { return b.entries[i].refusals }

// unheard are the attempts of task i whose end nobody heard of.
func (b *board) unheard(i int) []int32 { return b.entries[i].unheard }

// left are the keys of the records that attempts of task i in generations before may have left.
func (b *board) left(i int) []string {
	if m := b.entries[i].more; m != nil {
		return m.left
	}
	return nil
}

// checkpoint is what the newest attempt of task i has left for the next; nil: nothing.
func (b *board) checkpoint(i int) *v1.Checkpoint { return b.entries[i].checkpoint }

// place notes why the newest claim of task i goes to its node, what it has there, and the number of
// the first instance of the batch that it goes with; -1: it goes by itself.
func (b *board) place(i int, why string, lead int, there ...fact) {
	b.entries[i].why, b.entries[i].lead, b.entries[i].place = why, int32(lead), there
}

// wait shows why task i has no node.
func (b *board) wait(i int, reason string) {
	b.change(i, func(e *entry) { e.text = reason })
}

// hold shows that a person holds task i back, or no more.
func (b *board) hold(i int, held bool) {
	b.rare(i).held = held
	b.touch(i)
}

// scheduleAfter shows when task i is tried again.
func (b *board) scheduleAfter(i int, at time.Time, now time.Time) {
	e := &b.entries[i]
	e.queuedAt = 0
	if e.scheduledAfter == nil { // else an execution before has told it
		until := at.UTC().Format(time.RFC3339Nano)
		b.log.add(now, v1.EventRetried, i, "", e.attempt, e.claim, "waits until "+until, fact{dataUntil, until})
	}
	b.change(i, func(e *entry) { e.scheduledAfter = timestamppb.New(at) })
}

// attemptEnded shows what a dispatch of task i left; what the core makes of it
// follows with update. What the node does not say of it is as of now.
func (b *board) attemptEnded(i int, d dispatchEnd, now time.Time) {
	e := &b.entries[i]
	attempt := d.attempt(now)
	e.ended, e.avoid, e.lead = attempt, "", -1
	if d.outcome != v1.OutcomeDone && d.outcome != "" {
		e.avoid = d.node
	}
	if e.refusals++; d.outcome != v1.OutcomeRefused {
		e.refusals = 0
	}
	if d.unheard && !slices.Contains(e.unheard, d.number) {
		e.unheard = append(slices.Clip(e.unheard), d.number)
	}
	if d.checkpoint != nil {
		e.checkpoint = d.checkpoint
	}
	if d.ended.State == v1.AttemptMoved {
		if d.ended.Reason == v1.ReasonNotStarted || d.ended.Reason == v1.ReasonNotPickedUp {
			b.change(i, func(e *entry) { e.suspicions++ })
		}
		return
	}
	e.record = d.res.GetRecord()
	b.change(i, func(e *entry) {
		e.result = shownResult(d.res)
		if attempt.AssignedAt != nil {
			e.assignedAt = attempt.AssignedAt
		}
		e.startedAt, e.completedAt = attempt.StartedAt, nil
		if attempt.State == v1.TaskCompleted {
			e.checkpoint = nil
			if e.group >= 0 && len(e.attempts) == 0 {
				return // all that there is to say of it the instance says itself
			}
		}
		if e.attempts = append(e.attempts, attempt); len(e.attempts) > maxAttempts {
			e.attempts = e.attempts[len(e.attempts)-maxAttempts:]
		}
	})
}

// resultOf is the result of an answer, never nil and never without an output.
func resultOf(res *v1.ExecuteResponse) *v1.TaskResult {
	result := res.GetResult()
	if result == nil {
		return nothingRan
	}
	if result.Output == nil {
		result.Output = &structpb.Struct{}
	}
	return result
}

// shownResult is resultOf without the update of the context that the record has.
func shownResult(res *v1.ExecuteResponse) *v1.TaskResult {
	result := resultOf(res)
	if res.GetRecord() == "" || result.GetContextUpdate() == nil {
		return result
	}
	result = proto.CloneOf(result)
	result.ContextUpdate = nil
	return result
}

// result is what the newest ended attempt of task i left, and the key of the
// record that has all of it, if the board has not.
func (b *board) result(i int) (*v1.TaskResult, string) {
	return b.entries[i].result, b.entries[i].record
}

// setContext shows the context as it is now.
func (b *board) setContext(context *structpb.Struct) {
	b.run.Context = context
	b.revision++
	b.contextRevision = b.revision
}

// endRun shows how a run ended.
func endRun(run *v1.Run, end *dag.End, now time.Time) {
	run.State, run.Reason, run.Error, run.Problem = end.State, end.Reason, end.Error, ""
	run.CompletedAt = timestamppb.New(now)
}
