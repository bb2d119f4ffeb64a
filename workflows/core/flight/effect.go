package flight

import (
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/eventlog"
)

// An Effect is what the caller carries out, in the order in which a method of [State] has returned it. Where an effect has an
// answer, its comment names the method that takes it.
type Effect interface{ isEffect() }

// These effects are for the run itself.
type (
	// Raise reports an event to the core.
	Raise struct{ Event dag.Event }
	// Continue continues the run, which is paused, for a reason.
	Continue struct{ Reason string }
	// Wake starts another round even without an event.
	Wake struct{}
	// LookUp evaluates the cache key of a task and looks for its result, unless the task has ended meanwhile: LookedUp.
	LookUp struct {
		Task  int
		Claim int32
	}
	// SettleCached merges the update of the context that a cached result holds: CachedSettled.
	SettleCached struct {
		Task   int
		Claim  int32
		Key    string
		Cached *historyv1.CachedResult
	}
	// NameLock evaluates the name of the lock of a task, which may have ended meanwhile: LockNamed.
	NameLock struct {
		Task  int
		Claim int32
	}
	// Render evaluates the expressions in the spec of a task that needs no node: Rendered.
	Render struct {
		Task  int
		Claim int32
	}
	// StartRun starts the run of a task of type run with a spec: RunStarted, RunOpened, RunOver or RunRefused.
	StartRun struct {
		Unit *Unit
		Spec *structpb.Struct
	}
	// ReattachRun waits for the run that a task started in the previous execution: RunOver.
	ReattachRun struct{ Unit *Unit }
	// CancelRun cancels the run of a task.
	CancelRun struct {
		Unit *Unit
		Why  string // in one line
		Now  bool   // with its finally
	}
	// Settle merges the update of the context that an attempt has left: Settled.
	Settle struct{ End End }
	// AskRetry evaluates whether a failed attempt may be retried: RetryAnswered.
	AskRetry struct{ End End }
	// Cache caches the result of a task for later runs.
	Cache struct{ End End }
	// After waits: Due.
	After struct {
		Delay   time.Duration
		Summary string
		Timer   Timer
	}
	// StartTimer waits, too, until StopTimer. A timer that is not running may be stopped.
	StartTimer struct {
		Delay   time.Duration
		Summary string
		Timer   Timer
	}
	StopTimer struct{ Timer Timer }
)

// These effects are for nodes.
type (
	// Reattach starts an activity that waits for an attempt on its node, or that stops it there: Answered.
	Reattach struct {
		Unit *Unit
		Stop bool
	}
	// Reserve asks the node of a member of a gang to reserve its place: Reserved. With Undo the node need not keep the place, and
	// there is no answer.
	Reserve struct {
		Unit *Unit
		Undo bool
	}
	// Cancel cancels the activity of an attempt.
	Cancel struct{ Unit *Unit }
	// Find asks the node of an attempt that is away for it, as soon as the node is back: Found or NotFound.
	Find struct{ Unit *Unit }
	// Detach asks a node to detach attempts. The activities of the attempts get the answer.
	Detach struct {
		Node    string
		Request *historyv1.DetachRequest
	}
	// FindSilent looks for silent nodes among those of cancelled attempts: FoundSilent.
	FindSilent struct{ Nodes []string }
	// LoadProgress loads the record of the ended members of a batch: Progressed.
	LoadProgress struct {
		Unit   *Unit
		Answer Answer
	}
	// AwaitRecord waits until the node of a lost attempt has delivered all its records: Recorded.
	AwaitRecord struct {
		Unit   *Unit
		Answer Answer
		// Silence is how long the node may be silent. Retried reports whether the members are retried, or continue elsewhere, if
		// there is no record.
		Silence time.Duration
		Retried bool
	}
)

// These effects are for what people see.
type (
	// Show shows a task whose record has changed, and logs an event of it unless Event is "".
	Show struct {
		Task        int
		Event, Text string
		Facts       []eventlog.Fact
	}
	// UseNode shows that the run uses a node.
	UseNode struct{ Node string }
	// LogCommand logs the command of a person, or of the time limit, for a task.
	LogCommand struct {
		Task    int
		Event   string
		Command *historyv1.TaskCommand
	}
	// ShowSlot shows which runs hold the run slots, or that this run has its slot if there are none.
	ShowSlot struct{ Holders []string }
	// ShowStarted shows when the attempt of a task started; nil if that is unknown again.
	ShowStarted struct {
		Task int
		At   *timestamppb.Timestamp
	}
	// ShowEnd shows how a dispatch has ended.
	ShowEnd struct{ End End }
	// ShowLate shows that a task, or the run for eventlog.WholeRun, has not ended within its expected time.
	ShowLate struct {
		Task  int
		Since time.Time
		Text  string
	}
)

func (Raise) isEffect()        {}
func (Wake) isEffect()         {}
func (Continue) isEffect()     {}
func (LookUp) isEffect()       {}
func (SettleCached) isEffect() {}
func (NameLock) isEffect()     {}
func (Render) isEffect()       {}
func (ReattachRun) isEffect()  {}
func (CancelRun) isEffect()    {}
func (StartTimer) isEffect()   {}
func (StopTimer) isEffect()    {}
func (LogCommand) isEffect()   {}
func (StartRun) isEffect()     {}
func (Settle) isEffect()       {}
func (AskRetry) isEffect()     {}
func (Cache) isEffect()        {}
func (After) isEffect()        {}
func (Reattach) isEffect()     {}
func (Reserve) isEffect()      {}
func (Cancel) isEffect()       {}
func (Find) isEffect()         {}
func (FindSilent) isEffect()   {}
func (Detach) isEffect()       {}
func (LoadProgress) isEffect() {}
func (AwaitRecord) isEffect()  {}
func (Show) isEffect()         {}
func (UseNode) isEffect()      {}
func (ShowSlot) isEffect()     {}
func (ShowStarted) isEffect()  {}
func (ShowEnd) isEffect()      {}
func (ShowLate) isEffect()     {}

// Timer is what a wait was for.
type Timer struct {
	kind   timerKind
	unit   *Unit
	task   int    // whose deadline or expected end it is
	answer Answer // of an attempt whose lease runs
}

type timerKind int

const (
	stopTimer     timerKind = iota // an attempt that runs detached is to be stopped
	leaseTimer                     // an attempt may run detached until its lease is over
	findTimer                      // the next request for an attempt that is away
	approvalTimer                  // people have not decided in time
	reminderTimer                  // people are reminded of an approval
	deadlineTimer                  // the deadline of a task
	runTimer                       // the deadline of the run
	finallyTimer                   // the time-out of finally
	silenceTimer                   // the next look for silent nodes
	lateTimer                      // the expected end of a task
	runLateTimer                   // the expected end of the run
)
