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
	// maxAttempts is the most attempts shown for a task.
	maxAttempts = 100
	// maxAgentEvents is the most agent turns and tool calls logged for an attempt. The newest are kept.
	maxAgentEvents = 100
	// shownInstances is the most instances of a task that the status shows; the query "instances" shows all.
	shownInstances = 1000
)

// Status is a run as people see it. Like the core, it holds the tasks first and then the instances, under the same indices.
// Messages are created on request. Data that they share with the status is never modified, only replaced.
type Status struct {
	// Run is the run without its tasks.
	Run *v1.Run
	// Log holds the events of the run that are not stored yet.
	Log *eventlog.Log
	// Revision is the revision of the newest change, and ContextRevision that of the newest change of the context.
	Revision, ContextRevision int64
	// BusyFanOuts is the number of tasks with instances in flight.
	BusyFanOuts int
	// PausedBy is who has paused the run, and why, or "" if it is not paused or that is unknown.
	PausedBy string
	// WaitReason returns why a task that has not requested a node is waiting. It may be nil.
	WaitReason func(task int) string

	graph   *dag.Graph
	entries []entry
	order   order
}

// entry is one task or instance.
type entry struct {
	group, number int32 // task of the instance and its number; -1 for a task

	state, reason, text, node string // from the core; text is what went wrong
	attempt, claim            int32

	result                                             *v1.TaskResult
	assignedAt, startedAt, completedAt, scheduledAfter *timestamppb.Timestamp
	attempts                                           []*v1.Attempt
	suspicions                                         int32
	lead                                               int32 // number of the first instance of its batch, or -1 if it is in no batch

	record         string          // key of the record with the whole result, or "" if this result is whole
	avoid          string          // node of the newest dispatch that failed or that the node handed back
	why            string          // why the newest dispatch went to its node; for an approval, its message
	place          []eventlog.Fact // facts of the newest dispatch, until the event of its assignment is logged
	queuedAt       int64           // when the newest attempt requested a placement, in nanoseconds since 1970, or 0 if it has not
	refusals       int32           // number of consecutive refusals by nodes without room
	lostLeases     int32           // number of leases lost on live nodes since an attempt ended in another way
	unacknowledged []int32
	ended          *v1.Attempt // ended dispatch, until the core has processed it
	checkpoint     *v1.Checkpoint
	extras         *Extras // nil if the task has none of them

	revision int64
}

// Extras holds the fields that only few tasks have.
type Extras struct {
	held       bool   // by a person
	heldBy     string // who holds it, and why, or "" if unknown
	suspended  string // who suspended it, and why, or ""
	silent     string // why its node counts as silent, or ""
	away       string // why it is lost until its node is back, or ""
	cachedFrom string // run whose result was reused
	CacheKey   string // key under which the result will be cached
	Uncached   string // why its result will not be cached although its definition has a cache
	ChildRun   string
	Lock       string    // name of its lock, if an expression gave it
	left       []string  // keys of records that attempts of earlier generations may have left
	items      *v1.Items // evaluated list of a foreach
	FanOut     *FanOut   // nil if it has no instances yet
	SteeredBy  string    // who requeued, cancelled or killed it, until that event is logged
	ReadyAt    time.Time // when it could first start; zero if unknown
	putBacks   int32     // number of times it was requeued after its end
	continues  bool      // an earlier dispatch started its newest attempt, which runs outside the nodes
	// agentEvents are the events of the ended dispatch, until they are logged.
	agentEvents []*v1.AgentEvent
}

// FanOut describes the instances of a task.
type FanOut struct {
	First, From, Count int                    // index of the first instance, its number, and the number of instances
	Total              int                    // instances of the whole task; more than Count in a partition
	CreatedAt          *timestamppb.Timestamp // nil until the task runs
	Counts             map[string]int32
	View               *v1.FanOutView // what conditions see of it; set by the first that asks after the task has ended
}

// New returns the status of a run that is about to begin.
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
		part := in.GetPartition()
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

// add adds a task or an instance.
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

// AddInstances adds the instances of the core that the status does not have yet.
func (s *Status) AddInstances(core *dag.State) {
	for i := len(s.entries); i < core.Len(); i++ {
		s.add(core.Group(i), core.Number(i))
	}
}

// NothingRan is the result of a task that has not run at all. EmptyResult is the result of a completed task without any output.
// Neither is ever modified.
var (
	NothingRan  = &v1.TaskResult{ExitCode: -1, Output: &structpb.Struct{}}
	EmptyResult = &v1.TaskResult{Output: &structpb.Struct{}}
)

// TaskOf returns the task of instance i, or i itself if it is a task.
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

// Extras returns the rarely used fields of task i, for modification.
func (s *Status) Extras(i int) *Extras {
	e := &s.entries[i]
	if e.extras == nil {
		e.extras = &Extras{}
	}
	return e.extras
}

// FanOut returns the description of task i's instances, or nil if it has none yet.
func (s *Status) FanOut(i int) *FanOut {
	if m := s.entries[i].extras; m != nil {
		return m.FanOut
	}
	return nil
}

// Touch gives task i the newest revision. For an instance that is not shown, it gives the task the revision, because the counts
// of the task change.
func (s *Status) Touch(i int) {
	if e := &s.entries[i]; e.group >= 0 && e.number >= shownInstances {
		i = int(e.group)
	}
	s.Revision++
	s.entries[i].revision = s.Revision
	s.order.toEnd(i)
}

// change modifies the entry of task i and gives it the newest revision.
func (s *Status) change(i int, f func(*entry)) {
	f(&s.entries[i])
	s.Touch(i)
}

// Update shows the core's record of task i and logs the change.
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
	case !v1.IsTaskTerminal(rec.State) && v1.IsTaskTerminal(e.state): // it was requeued, or waits for a task that was
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

// forget clears the end of task i.
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

// countGroup counts the tasks whose instances begin or end.
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
		// The previous end of the task, if any, is void now.
		if f := s.FanOut(i); f != nil {
			f.View = nil
			f.CreatedAt = cmp.Or(f.CreatedAt, timestamppb.New(now))
		}
		if e := &s.entries[i]; e.startedAt == nil || was != v1.TaskRunning {
			e.startedAt = timestamppb.New(now)
		}
	case rec.State == v1.TaskCompleted && s.FanOut(i) == nil: // it fans out over nothing
		s.Extras(i).FanOut = &FanOut{Counts: map[string]int32{}}
		s.entries[i].startedAt = timestamppb.New(now)
	}
}

// ShownState returns the state of task i as people see it. A task that waits for approval, or that a person has suspended, is
// paused. A task whose node is silent counts as running. A task that is away with its node is lost.
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

// recount updates the counts of a task when the shown state of instance i has changed. was is the earlier state.
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

// SetQueued records when task i began to wait for a node. A claim that is placed again keeps its time.
func (s *Status) SetQueued(i int, now time.Time) {
	if e := &s.entries[i]; e.queuedAt == 0 {
		e.queuedAt = now.UnixNano()
	}
}

// QueuedAt returns when the newest attempt of task i requested a placement. It is valid only after SetQueued.
func (s *Status) QueuedAt(i int) time.Time { return time.Unix(0, s.entries[i].queuedAt) }

// AvoidedNode returns the node on which the newest dispatch of task i failed, or which handed it back, or "" if there is none.
func (s *Status) AvoidedNode(i int) string { return s.entries[i].avoid }

// Refusals returns the number of consecutive refusals of task i by nodes without room.
func (s *Status) Refusals(i int) int32 { return s.entries[i].refusals }

// LostLeases returns how many leases task i's attempts have lost on live nodes since one of them ended in another way.
func (s *Status) LostLeases(i int) int32 { return s.entries[i].lostLeases }

// Unacknowledged returns the numbers of the attempts of task i whose end is unknown.
func (s *Status) Unacknowledged(i int) []int32 { return s.entries[i].unacknowledged }

// PutBacks returns how often task i was requeued after its end. Only tasks that run outside the nodes are counted.
func (s *Status) Requeues(i int) int32 {
	if m := s.entries[i].extras; m != nil {
		return m.putBacks
	}
	return 0
}

// Continues reports whether an earlier dispatch started the newest attempt of task i, which runs outside the nodes.
func (s *Status) Continues(i int) bool {
	m := s.entries[i].extras
	return m != nil && m.continues
}

// Lock returns the name of task i's lock if an expression gave it, or "".
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

// Checkpoint returns what the newest attempt of task i left for the next one, or nil if it left nothing.
func (s *Status) Checkpoint(i int) *v1.Checkpoint { return s.entries[i].checkpoint }

// SetPlace records why the newest claim of task i goes to its node, the facts of that placement, and the number of the first
// instance of its batch, or -1 if it is in no batch.
func (s *Status) SetPlace(i int, why string, lead int, there ...eventlog.Fact) {
	s.entries[i].why, s.entries[i].lead, s.entries[i].place = why, int32(lead), there
}

// SetWaitReason shows why task i has no node.
func (s *Status) SetWaitReason(i int, reason string) {
	s.change(i, func(e *entry) { e.text = reason })
}

// SetHeld shows whether a person holds task i, and who and why if known.
func (s *Status) SetHeld(i int, held bool, by string) {
	s.Extras(i).held, s.Extras(i).heldBy = held, by
	s.Touch(i)
}

// SetRetryTime shows when task i is retried.
func (s *Status) SetRetryTime(i int, at time.Time, now time.Time) {
	e := &s.entries[i]
	e.queuedAt = 0
	if e.scheduledAfter == nil { // otherwise a previous execution has logged it
		until := at.UTC().Format(time.RFC3339Nano)
		s.Log.Add(now, v1.EventRetried, i, "", e.attempt, e.claim, "waits until "+until, eventlog.KeyUntil.Of(until))
	}
	s.change(i, func(e *entry) { e.scheduledAfter = timestamppb.New(at) })
}

// EndAttempt shows the end of a dispatch of task i; Update then shows the resulting record of the core. Times that the node
// does not report are set to now.
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
				return // the instance itself holds everything there is to show
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

// shownResult returns the result of an answer without the context update if the record holds it.
func shownResult(res *v1.ExecuteResponse) *v1.TaskResult {
	result := ResultOf(res)
	if res.GetRecord() == "" || result.GetContextUpdate() == nil {
		return result
	}
	result = proto.CloneOf(result)
	result.ContextUpdate = nil
	return result
}

// Result returns the result of task i's newest ended attempt, and the key of the record that holds all of it, or "" if the
// result is whole.
func (s *Status) Result(i int) (*v1.TaskResult, string) {
	return s.entries[i].result, s.entries[i].record
}

// State returns the state of task i in the core.
func (s *Status) State(i int) string { return s.entries[i].state }

// StoredText returns what went wrong with task i, or why it waits, as it was last set.
func (s *Status) StoredText(i int) string { return s.entries[i].text }

// AssignedAt returns when the newest dispatch of task i was given a node, or nil if none was.
func (s *Status) AssignedAt(i int) *timestamppb.Timestamp { return s.entries[i].assignedAt }

// SetStartedAt records when the running attempt of task i started.
func (s *Status) SetStartedAt(i int, at *timestamppb.Timestamp) { s.entries[i].startedAt = at }

// SetContext shows a new context.
func (s *Status) SetContext(context *structpb.Struct) {
	s.Run.Context = context
	s.Revision++
	s.ContextRevision = s.Revision
}

// EndRun sets the final state of a run and the time of its end.
func EndRun(run *v1.Run, end *dag.End, now time.Time) {
	run.State, run.Reason, run.Error, run.Problem = end.State, end.Reason, end.Error, ""
	run.CompletedAt = timestamppb.New(now)
}
