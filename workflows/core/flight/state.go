package flight

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/admission"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/limits"
)

// Config is what the pure parts of a run know of it.
type Config struct {
	Input        *historyv1.RunInput
	RunID, Chain string // ID of the run that the tasks belong to, and the chain under which they store their data
	// Home is the key prefix under which the workflow stores its data, and Execution the ID of this execution.
	Home, Execution string
	// Self is the ID of the workflow, which differs from RunID in a partition, First the ID of its first execution, and Original
	// the ID with which this execution was started, before any reset.
	Self, First, Original string
	Limits                limits.Run
	// HeartbeatTimeout is how long the node of an attempt may be silent, unless its task or the run sets another time.
	HeartbeatTimeout time.Duration
}

// State holds the units of a run, each from the moment that its tasks may start until they have ended:
//
//	admitted ──> locking ──> waiting ──> placed ──> attended ──> ended
//	    │   its lock   its node    its dispatch  │    ▲
//	    │                                        │    ├── detached: no activity waits for it
//	    └──> elsewhere: it needs no node         └────┴── away: its node is silent, and may still have it
//
// Its methods return the effects of what has happened. A State is not safe for concurrent use.
type State struct {
	Config
	core    *dag.State
	records *Records
	effects []Effect // of the running method

	queue *admission.Queue
	units map[int]*Unit // by each of their members

	lockRequests []*historyv1.LockRequest // for the next call, in order
	hasSlot      bool                     // the run holds its run slot
	awaitsSlot   bool                     // other runs hold it

	epoch        string // of the placement queue that has answered last
	acknowledged int64  // number of the newest answer of this epoch
	requests     []int  // leads of units to request in the next call
	sent         int    // how many of them the running call has taken
	released     []*historyv1.ClaimRef
	waiting      int     // units in the placement queue
	isAwaiting   bool    // an answer of the placement queue is awaited
	isPausing    bool    // placement could not answer; the next call follows soon
	placed       []*Unit // units that are not dispatched yet, in the order of their placements

	attended int     // attempts with an activity, or whose end is being found out
	asked    int     // pending requests to nodes about attempts
	detached []*Unit // detached and away, in the order of detaching

	workspaces map[string][]int // the tasks of each
	gangs      map[int]*gang    // of the tasks that run as gangs, while they are in flight

	approvals int            // tasks that wait for a person
	completed []CompletedRun // in the order of their ends
	isReading bool           // results of completed runs are being read

	abandoned []*historyv1.AwaitAnswerRequest // attempts of the previous generation that may still run

	due             map[Timer]bool       // the deadlines and expected ends of tasks that run
	runDue          time.Time            // deadline of the run; zero if it has none
	expectedAt      time.Time            // when the run becomes late; zero if it does not, or already is
	silentSince     map[string]time.Time // of nodes of cancelled attempts that are known to be silent, by name
	isSeekingSilent bool                 // nodes are being looked for, or are about to be
	// finallyDue is the end of the time-out of `finally`; zero if it has not begun or has none.
	finallyDue time.Time
	// finallyStoppedAt is when the clock of that time-out stopped, because the run is paused; zero while it goes.
	finallyStoppedAt time.Time
	// hasFinallyTimer is true while a timer will ask whether the time-out has passed.
	hasFinallyTimer bool
}

// New returns the state of a run in which nothing is in flight.
func New(c Config, core *dag.State, records *Records) *State {
	s := &State{Config: c, core: core, records: records, queue: admission.New(int(c.Input.GetDefinition().GetMaxParallel())), units: map[int]*Unit{}, due: map[Timer]bool{}, workspaces: workspacesOf(core), gangs: map[int]*gang{}}
	s.queue.LimitChildren(c.Limits.Children)
	return s
}

// Phase is where a unit is on its way.
type Phase int

// These are the phases of a unit.
const (
	Admitted  Phase = iota
	Locking         // it waits for its lock
	Waiting         // it waits for a node
	Placed          // it has a node, and is not dispatched yet
	Reserving       // its node is asked to reserve the place of a member of a gang
	Elsewhere       // it waits for a person or is a run of its own
	Attended        // an activity waits for its attempt, or the end of its attempt is being found out
	Detached        // its attempt runs without an activity
	Away            // its node is away, and may still have its attempt
	Withheld        // it has ended, and others of its gang have not
	Gone            // it is no longer in flight
)

// Unit is the set of tasks that share one placement: a task, an instance, or the instances of a batch. Only a State changes it.
type Unit struct {
	Lead    int   // represents the unit in the admission queue and in the placement queue
	Members []int // in execution order, without those that have ended separately
	Claim   int32 // of the lead
	Phase   Phase
	Place   // zero until it is placed
	// Assignment names the task queue of its node and the worker process that it was placed on; nil until it is placed.
	Assignment *historyv1.Assignment
	Run        *Run // of a task of type run
	// LeaseUntil is when the lease of its detachment ends; zero if it was never detached. Unless it is reattached, nothing of it
	// runs after that.
	LeaseUntil time.Time

	approval  *Approval // that it waits for, or nil
	lock      admission.Lock
	gang      *gang                  // that it is a member of, or nil
	startedAt *timestamppb.Timestamp // of an attempt with one member; nil if unknown
	stopped   []int                  // members that are to be stopped
	// isSteered is set while its node has not answered a request about it, and isUnsure while it is unknown whether it is suspended.
	isSteered, isUnsure bool
	isSought            bool   // its node is being asked for it
	isRequested         bool   // a node is asked for, or was; while another unit uses its workspace, none is
	askedIn             int    // round in which its node was asked to detach it; 0 if it was not asked, or if it has detached
	excuse              string // why its lease was lost although its node lives, or ""
}

// hasAttempt reports whether a node may have the unit.
func (u *Unit) hasAttempt() bool {
	return u.Phase == Attended || u.Phase == Detached || u.Phase == Away
}

// take returns the effects of the running method.
func (s *State) take() []Effect {
	effects := s.effects
	s.effects = nil
	return effects
}

// do adds effects of the running method.
func (s *State) do(effects ...Effect) { s.effects = append(s.effects, effects...) }

// raise adds events for the core.
func (s *State) raise(events ...dag.Event) {
	for _, e := range events {
		s.do(Raise{e})
	}
}

// UnitOf returns the unit in flight that a task belongs to, or nil if there is none.
func (s *State) UnitOf(i int) *Unit { return s.units[i] }

// AssignmentOf returns the newest placement of a task, or nil if it has none.
func (s *State) AssignmentOf(i int) *historyv1.Assignment {
	if u := s.units[i]; u != nil {
		return u.Assignment
	}
	return nil
}

// AttemptOf returns the unit of a task if a node may have it, otherwise nil.
func (s *State) AttemptOf(i int) *Unit {
	if u := s.units[i]; u != nil && u.hasAttempt() {
		return u
	}
	return nil
}

// IsQuiet reports whether no node has to answer and no placement waits for its dispatch, so that the next execution can take over.
func (s *State) IsQuiet() bool { return s.attended == 0 && s.asked == 0 && len(s.placed) == 0 }

// leads returns the units in flight, in the order of their leads.
func (s *State) leads() (all []*Unit) {
	for i := range s.core.Len() {
		if u := s.units[i]; u != nil && u.Lead == i {
			all = append(all, u)
		}
	}
	return all
}

// InstanceCount returns how many instances a task has, in all its partitions. ok is false if it has not fanned out.
func (s *State) InstanceCount(task int) (n int, ok bool) {
	_, n, _, ok = s.core.Expansion(task)
	if part := s.Input.GetPartition(); ok && part != nil {
		return int(part.GetCount()), true
	}
	return n, ok || s.core.FansOut(task) && s.core.Task(task).State == v1.TaskCompleted // it may have fanned out over nothing
}

// InstanceCounts returns how many instances of a task are in each state, as people see it. The caller must not modify the map.
func (s *State) InstanceCounts(task int) map[string]int32 {
	if counts := s.records.Of(task).Counts; counts != nil {
		return counts
	}
	counts := map[string]int32{}
	first, count := s.core.Instances(task)
	for i := first; i < first+count; i++ {
		counts[s.Shown(i)]++
	}
	return counts
}

// Shown returns the state in which people see a task. A task that waits for approval, or that a person has suspended, is paused. A
// task whose node is silent counts as running. A task that is away with its node is lost.
func (s *State) Shown(i int) string {
	state, own := s.core.Task(i).State, s.records.Of(i)
	switch isDispatched := v1.IsTaskDispatched(state); {
	case state == v1.TaskAssigned && s.core.Definition(i).GetType() == v1.TypeApproval:
		return v1.TaskPaused
	case isDispatched && own.Away != "":
		return v1.TaskLost
	case isDispatched && own.Suspended != "":
		return v1.TaskPaused
	case state == v1.TaskAssigned && own.Silent != "":
		return v1.TaskRunning
	}
	return state
}

// claimOf returns the newest claim of a task.
func (s *State) claimOf(i int) int32 { return s.core.Task(i).Claim }

// lockOf returns the lock that a task must hold while it runs, or a lock without a name if it needs none.
func (s *State) lockOf(i int) admission.Lock {
	def := s.core.Definition(i)
	name := definition.LockName(def)
	if definition.HasLockTemplate(def) {
		name = s.records.Of(i).Lock
	}
	switch {
	case name == "":
		return admission.Lock{}
	case def.GetMutex() != "":
		return admission.Lock{Name: name, Limit: 1}
	}
	return admission.Lock{Name: name, Limit: int(def.GetSemaphore().GetLimit())}
}

// remove removes a unit from a list.
func remove(list []*Unit, u *Unit) []*Unit {
	return slices.DeleteFunc(list, func(other *Unit) bool { return other == u })
}
