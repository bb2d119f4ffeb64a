package status

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
	"switchyard/workflows/structs"
)

const (
	// maxAttempts is how many attempts of a task are shown.
	maxAttempts = 100
	// maxAgentEvents is how many turns and calls of tools of an attempt are logged: its newest.
	maxAgentEvents = 100
	// shownInstances is how many instances of a task the status shows; the query
	// "instances" shows all.
	shownInstances = 1000
)

// Status is a run as people see it. Like the core it has the tasks first and then the instances, by the same indices.
// Messages are made when they are asked for. What they share with the status is never changed, only replaced.
type Status struct {
	// Run is the run without its tasks.
	Run *v1.Run
	// Log has the events of the run that are not stored.
	Log *eventlog.Log
	// Revision is that of the newest change, and ContextRevision that of the newest change of the context.
	Revision, ContextRevision int64
	// BusyFanOuts is how many tasks have instances under way.
	BusyFanOuts int
	// PausedBy is who has paused the run, and why, or "" if it is not paused or that is not known.
	PausedBy string
	// WaitReason returns why a task waits that has not asked for a node. It may be nil.
	WaitReason func(task int) string

	graph   *dag.Graph
	entries []entry
	order   order
}

// entry is one task or instance.
type entry struct {
	group, number int32 // task that it is an instance of, and its number; -1 for a task

	state, reason, text, node string // as the core says; text is what went wrong
	attempt, claim            int32

	result                                             *v1.TaskResult
	assignedAt, startedAt, completedAt, scheduledAfter *timestamppb.Timestamp
	attempts                                           []*v1.Attempt
	suspicions                                         int32
	lead                                               int32 // number of the first instance of its batch, or -1 without a batch

	record         string          // key of the record that has the whole result, or "" if this one is whole
	avoid          string          // node that failed under the newest dispatch, or handed it back
	why            string          // why the newest dispatch went to its node; of an approval: what is asked
	place          []eventlog.Fact // of the newest dispatch, until the event of its assignment is logged
	queuedAt       int64           // when it asked for a place for its newest attempt, in nanoseconds since 1970, or 0 if it has not
	refusals       int32           // how often in a row a node had no room
	lostLeases     int32           // how often its lease was lost on a live node since an attempt ended otherwise
	unacknowledged []int32
	ended          *v1.Attempt // dispatch that has ended, until the core has taken it in
	checkpoint     *v1.Checkpoint
	extras         *Extras // or nil if the task has none of them

	revision int64
}

// Extras has what only few tasks have.
type Extras struct {
	held       bool   // by a person
	heldBy     string // who holds it back, and why, or "" if that is not known
	suspended  string // who has suspended it, and why, or ""
	silent     string // how its node is silent, or ""
	away       string // why it is lost until its node is back, or ""
	cachedFrom string // run whose result was reused
	CacheKey   string // under which the result is to be kept
	Uncached   string // why its result is kept under none, although it has a cache
	ChildRun   string
	Lock       string    // name of its lock, if that was made from an expression
	left       []string  // keys of records that attempts of generations before may have left
	items      *v1.Items // of a foreach whose list was evaluated
	FanOut     *FanOut   // or nil if it has no instances yet
	SteeredBy  string    // who requeued, cancelled or killed it, until the event of that is logged
	ReadyAt    time.Time // when it could first start, if that is known
	putBacks   int32     // how often it was put back after it had ended
	continues  bool      // an earlier dispatch has started its newest attempt, which runs outside of the nodes
	// agentEvents are those of the dispatch that has ended, until they are logged.
	agentEvents []*v1.AgentEvent
}

// FanOut has what is known of the instances of a task.
type FanOut struct {
	First, From, Count int                    // index of the first, its number, how many there are
	Total              int                    // instances of the task; more than count in a part of one
	CreatedAt          *timestamppb.Timestamp // or nil until its task runs
	Counts             map[string]int32
	View               *v1.FanOutView // as conditions see it, once its task has ended and one has asked for it
}

// New returns the status of a run that is to begin.
func New(id string, in *v1.RunInput, graph *dag.Graph, created time.Time) *Status {
	s := &Status{
		Run: &v1.Run{
			Id:         id,
			Name:       in.GetDefinition().GetName(),
			State:      v1.RunRunning,
			CreatedAt:  timestamppb.New(created),
			Context:    structs.Clone(in.GetDefinition().GetContext()),
			Input:      structs.Clone(in.GetInput()),
			Generation: in.GetGeneration(),

			SubmittedBy: in.GetBy(),
			Batch:       in.GetBatch(),
		},
		graph:   graph,
		entries: make([]entry, 0, graph.Len()),
		order:   newOrder(),
	}
	s.Log = eventlog.New(s.Name, func(number int64) string {
		part := in.GetPart()
		if part == nil {
			return names.EventID(in.GetGeneration(), "", number)
		}
		return names.EventID(part.GetGeneration(), names.InstanceName(part.GetTask(), int(part.GetFrom())), number)
	})
	for range graph.Len() {
		s.add(-1, -1)
	}
	s.ContextRevision = s.Revision
	return s
}

// add adds a task, or an instance of one.
func (s *Status) add(group, number int) {
	i := len(s.entries)
	s.entries = append(s.entries, entry{
		group: int32(group), number: int32(number), lead: -1, state: v1.TaskPending, result: NothingRan,
	})
	if group >= 0 {
		f := s.FanOut(group)
		if f == nil {
			f = &FanOut{First: i, From: number, Counts: map[string]int32{}}
			s.Extras(group).FanOut = f
		}
		f.Count++
		f.Total = max(f.Total, f.Count)
		f.Counts[v1.TaskPending]++
	}
	s.Touch(i)
}

// AddInstances adds the instances that the core has and the status has not.
func (s *Status) AddInstances(core *dag.State) {
	for i := len(s.entries); i < core.Len(); i++ {
		s.add(core.Group(i), core.Number(i))
	}
}

// NothingRan is the result of a task of which nothing has run, and EmptyResult
// that of one that has completed without a word. They are never changed.
var (
	NothingRan  = &v1.TaskResult{ExitCode: -1, Output: &structpb.Struct{}}
	EmptyResult = &v1.TaskResult{Output: &structpb.Struct{}}
)

// TaskOf returns the task that i is, or is an instance of.
func (s *Status) TaskOf(i int) int {
	if g := s.entries[i].group; g >= 0 {
		return int(g)
	}
	return i
}

// Name returns the name of a task, or of an instance, such as "each[3]".
func (s *Status) Name(i int) string {
	e := &s.entries[i]
	if e.group < 0 {
		return s.graph.Name(i)
	}
	return names.InstanceName(s.graph.Name(int(e.group)), int(e.number))
}

func (s *Status) definition(i int) *v1.TaskDefinition { return s.graph.Definition(s.TaskOf(i)) }

// Extras returns what only few tasks have, of task i, to be changed.
func (s *Status) Extras(i int) *Extras {
	e := &s.entries[i]
	if e.extras == nil {
		e.extras = &Extras{}
	}
	return e.extras
}

// FanOut returns what is known of the instances of task i, or nil if it has none yet.
func (s *Status) FanOut(i int) *FanOut {
	if m := s.entries[i].extras; m != nil {
		return m.FanOut
	}
	return nil
}

// Touch gives task i the newest revision. An instance that is not shown changes
// the counts of its task.
func (s *Status) Touch(i int) {
	if e := &s.entries[i]; e.group >= 0 && e.number >= shownInstances {
		i = int(e.group)
	}
	s.Revision++
	s.entries[i].revision = s.Revision
	s.order.toEnd(i)
}

// change changes what is shown of task i.
func (s *Status) change(i int, f func(*entry)) {
	f(&s.entries[i])
	s.Touch(i)
}

// Update shows what the core knows of task i, and logs what has happened to it.
func (s *Status) Update(i int, rec dag.Record, now time.Time) {
	e := &s.entries[i]
	end := e.ended
	e.ended = nil
	s.logChange(i, rec, end, now)
	e.claim = rec.Claim
	before := s.ShownState(i)
	if rec.State == v1.TaskAssigned && e.state != v1.TaskAssigned {
		e.assignedAt, e.startedAt, e.scheduledAfter = timestamppb.New(now), nil, nil
	}
	switch {
	case !v1.IsTaskTerminal(rec.State) && v1.IsTaskTerminal(e.state): // it was put back, or waits for one that was
		s.forget(i)
	case v1.IsTaskTerminal(rec.State) && end != nil && end.State != v1.AttemptMoved:
		e.completedAt = end.CompletedAt
	case v1.IsTaskTerminal(rec.State) && e.completedAt == nil:
		e.completedAt = timestamppb.New(now)
	}
	s.countGroup(i, e.state, rec, now)
	e.state, e.reason, e.text = rec.State, rec.Reason, rec.Error
	e.node, e.attempt = rec.Node, rec.Attempt
	s.recount(i, before)
	s.Touch(i)
}

// forget clears how task i ended.
func (s *Status) forget(i int) {
	e := &s.entries[i]
	e.assignedAt, e.startedAt, e.completedAt = nil, nil, nil
	e.queuedAt, e.refusals, e.lostLeases = 0, 0, 0
	if v1.IsRemote(s.definition(i).GetType()) {
		s.Extras(i).putBacks++
	}
	if m := e.extras; m != nil {
		m.cachedFrom, m.CacheKey, m.Uncached, m.ChildRun, m.ReadyAt, m.SteeredBy, m.Lock = "", "", "", "", time.Time{}, "", ""
		m.continues = false
		if m.FanOut != nil {
			m.FanOut.View = nil
		}
	}
	if e.group >= 0 {
		if f := s.FanOut(int(e.group)); f != nil {
			f.View = nil
		}
	}
}

// countGroup counts tasks whose instances begin or end.
func (s *Status) countGroup(i int, was string, rec dag.Record, now time.Time) {
	if s.entries[i].group >= 0 || !s.graph.FansOut(i) {
		return
	}
	if was == v1.TaskRunning {
		s.BusyFanOuts--
	}
	if v1.IsTaskTerminal(rec.State) {
		s.entries[i].result = &v1.TaskResult{ExitCode: rec.ExitCode, Output: NothingRan.Output}
	}
	switch {
	case rec.State == v1.TaskRunning:
		s.BusyFanOuts++
		// What ended it before, if anything did, holds no more.
		if f := s.FanOut(i); f != nil {
			f.View = nil
			f.CreatedAt = cmp.Or(f.CreatedAt, timestamppb.New(now))
		}
		if e := &s.entries[i]; e.startedAt == nil || was != v1.TaskRunning {
			e.startedAt = timestamppb.New(now)
		}
	case rec.State == v1.TaskCompleted && s.FanOut(i) == nil: // over nothing
		s.Extras(i).FanOut = &FanOut{Counts: map[string]int32{}}
		s.entries[i].startedAt = timestamppb.New(now)
	}
}

// ShownState returns the state of task i as people see it: one that waits for a person is paused,
// and so is one that a person has suspended. One whose node is silent runs, as far as is known. One that is away with its node is
// lost.
func (s *Status) ShownState(i int) string {
	e := &s.entries[i]
	switch {
	case e.state == v1.TaskAssigned && s.definition(i).GetType() == v1.TypeApproval:
		return v1.TaskPaused
	case s.Away(i) != "":
		return v1.TaskLost
	case e.extras != nil && e.extras.suspended != "" && v1.IsTaskDispatched(e.state):
		return v1.TaskPaused
	case s.notice(i) != "":
		return v1.TaskRunning
	}
	return e.state
}

// pausedReason returns the reason of a task that is shown as paused.
func (s *Status) pausedReason(i int) string {
	if s.Suspended(i) != "" {
		return v1.ReasonSuspended
	}
	return v1.ReasonApproval
}

// recount counts instance i, which was shown in another state, for its task.
func (s *Status) recount(i int, was string) {
	g := s.entries[i].group
	if is := s.ShownState(i); g >= 0 && is != was {
		counts := s.FanOut(int(g)).Counts
		if counts[was]--; counts[was] == 0 {
			delete(counts, was)
		}
		counts[is]++
	}
}

// SetQueued notes when task i began to wait for a node; a claim that is placed
// again keeps its age.
func (s *Status) SetQueued(i int, now time.Time) {
	if e := &s.entries[i]; e.queuedAt == 0 {
		e.queuedAt = now.UnixNano()
	}
}

// QueuedAt returns when task i asked for a place for its newest attempt. It is known only once SetQueued was called.
func (s *Status) QueuedAt(i int) time.Time { return time.Unix(0, s.entries[i].queuedAt) }

// AvoidedNode is the node that failed under the newest dispatch of task i, or handed
// it back; empty: none.
func (s *Status) AvoidedNode(i int) string { return s.entries[i].avoid }

// Refusals returns how often in a row a node had no room for task i.
func (s *Status) Refusals(i int) int32 { return s.entries[i].refusals }

// LostLeases returns how often attempts of task i have lost their lease on a live node since one of them ended otherwise.
func (s *Status) LostLeases(i int) int32 { return s.entries[i].lostLeases }

// Unacknowledged returns the numbers of the attempts of task i whose end is not known.
func (s *Status) Unacknowledged(i int) []int32 { return s.entries[i].unacknowledged }

// PutBacks returns how often task i was put back after it had ended. Only tasks that run outside of the nodes are counted.
func (s *Status) PutBacks(i int) int32 {
	if m := s.entries[i].extras; m != nil {
		return m.putBacks
	}
	return 0
}

// Continues reports whether an earlier dispatch has started the newest attempt of task i, which runs outside of the nodes.
func (s *Status) Continues(i int) bool {
	m := s.entries[i].extras
	return m != nil && m.continues
}

// Lock returns the name of the lock of task i that was made from an expression, or "" if there is none.
func (s *Status) Lock(i int) string {
	if m := s.entries[i].extras; m != nil {
		return m.Lock
	}
	return ""
}

// LeftRecords returns the keys of the records that attempts of task i in earlier generations may have left.
func (s *Status) LeftRecords(i int) []string {
	if m := s.entries[i].extras; m != nil {
		return m.left
	}
	return nil
}

// Checkpoint returns what the newest attempt of task i has left for the next one, or nil if it has left nothing.
func (s *Status) Checkpoint(i int) *v1.Checkpoint { return s.entries[i].checkpoint }

// SetPlace notes why the newest claim of task i goes to its node, what it has there, and the number of
// the first instance of the batch that it goes with; -1: it goes by itself.
func (s *Status) SetPlace(i int, why string, lead int, there ...eventlog.Fact) {
	s.entries[i].why, s.entries[i].lead, s.entries[i].place = why, int32(lead), there
}

// SetWaitReason shows why task i has no node.
func (s *Status) SetWaitReason(i int, reason string) {
	s.change(i, func(e *entry) { e.text = reason })
}

// SetHeld shows whether a person holds task i back, and who and why if that is known.
func (s *Status) SetHeld(i int, held bool, by string) {
	s.Extras(i).held, s.Extras(i).heldBy = held, by
	s.Touch(i)
}

// SetRetryTime shows when task i is tried again.
func (s *Status) SetRetryTime(i int, at time.Time, now time.Time) {
	e := &s.entries[i]
	e.queuedAt = 0
	if e.scheduledAfter == nil { // else an execution before has reported it
		until := at.UTC().Format(time.RFC3339Nano)
		s.Log.Add(now, v1.EventRetried, i, "", e.attempt, e.claim, "waits until "+until, eventlog.KeyUntil.Of(until))
	}
	s.change(i, func(e *entry) { e.scheduledAfter = timestamppb.New(at) })
}

// EndAttempt shows what a dispatch of task i left; what the core makes of it
// follows with update. What the node does not say of it is as of now.
func (s *Status) EndAttempt(i int, d AttemptEnd, now time.Time) {
	e := &s.entries[i]
	attempt := d.attempt(now)
	e.ended, e.avoid, e.lead = attempt, "", -1
	if d.Outcome != v1.OutcomeDone && d.Outcome != "" {
		e.avoid = d.Node
	}
	if e.refusals++; d.Outcome != v1.OutcomeRefused {
		e.refusals = 0
	}
	if d.Unacknowledged && !slices.Contains(e.unacknowledged, d.Number) {
		e.unacknowledged = append(slices.Clip(e.unacknowledged), d.Number)
	}
	if d.Checkpoint != nil {
		e.checkpoint = d.Checkpoint
	}
	if events := d.Response.GetAgentEvents(); len(events) > 0 {
		s.Extras(i).agentEvents = events[max(0, len(events)-maxAgentEvents):]
	}
	isMoved := d.Ended.State == v1.AttemptMoved
	if d.Continues && isMoved {
		s.Extras(i).continues = true
	} else if e.extras != nil && !isMoved {
		e.extras.continues = false
	}
	if isMoved {
		if d.Ended.Reason == v1.ReasonLeaseLost {
			e.lostLeases++
		}
		if d.Ended.Reason == v1.ReasonNotStarted || d.Ended.Reason == v1.ReasonNotPickedUp {
			s.change(i, func(e *entry) { e.suspicions++ })
		}
		return
	}
	e.record, e.lostLeases = d.Response.GetRecord(), 0
	s.change(i, func(e *entry) {
		e.result = shownResult(d.Response)
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

// ResultOf returns the result of an answer, never nil and never without an output.
func ResultOf(res *v1.ExecuteResponse) *v1.TaskResult {
	result := res.GetResult()
	if result == nil {
		return NothingRan
	}
	if result.Output == nil {
		result.Output = &structpb.Struct{}
	}
	return result
}

// shownResult is resultOf without the update of the context that the record has.
func shownResult(res *v1.ExecuteResponse) *v1.TaskResult {
	result := ResultOf(res)
	if res.GetRecord() == "" || result.GetContextUpdate() == nil {
		return result
	}
	result = proto.CloneOf(result)
	result.ContextUpdate = nil
	return result
}

// Result returns what the newest ended attempt of task i left, and the key of the
// record that has all of it, or "" if the result is whole.
func (s *Status) Result(i int) (*v1.TaskResult, string) {
	return s.entries[i].result, s.entries[i].record
}

// State returns the state of task i as the core knows it.
func (s *Status) State(i int) string { return s.entries[i].state }

// StoredText returns what went wrong with task i, or why it waits, as it was last set.
func (s *Status) StoredText(i int) string { return s.entries[i].text }

// AssignedAt returns when the newest dispatch of task i was given a node, or nil if none was.
func (s *Status) AssignedAt(i int) *timestamppb.Timestamp { return s.entries[i].assignedAt }

// SetStartedAt notes when the attempt of task i that runs has started.
func (s *Status) SetStartedAt(i int, at *timestamppb.Timestamp) { s.entries[i].startedAt = at }

// SetContext shows the context as it is now.
func (s *Status) SetContext(context *structpb.Struct) {
	s.Run.Context = context
	s.Revision++
	s.ContextRevision = s.Revision
}

// EndRun shows how a run ended.
func EndRun(run *v1.Run, end *dag.End, now time.Time) {
	run.State, run.Reason, run.Error, run.Problem = end.State, end.Reason, end.Error, ""
	run.CompletedAt = timestamppb.New(now)
}
