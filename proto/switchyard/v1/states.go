package switchyardv1

// States of a task or of an instance: Task.state, Instance.state.
const (
	TaskPending  = "pending"  // waits for its parents or for its condition
	TaskQueued   = "queued"   // waits for a node, or for the end of a back-off
	TaskAssigned = "assigned" // dispatched to a node
	TaskRunning  = "running"  // its process has started
	TaskPaused   = "paused"   // waits for a person, or a person has suspended it

	TaskCompleted  = "completed"
	TaskStopped    = "stopped"
	TaskSkipped    = "skipped"
	TaskFailed     = "failed"
	TaskKilledOOM  = "killed_oom"
	TaskLost       = "lost"
	TaskKilled     = "killed"
	TaskDeadLetter = "dead_letter"
	TaskRejected   = "rejected"
	TaskCancelled  = "cancelled"
)

// AttemptMoved is how an attempt ends whose task is to be placed again. It is no state of a task.
const AttemptMoved = "moved"

// AttemptDetached is how the activity of an attempt ends that continues without it. It is no state of a task.
const AttemptDetached = "detached"

// States of a run: Run.state.
const (
	RunPending         = "pending"          // no control process has begun it
	RunPendingApproval = "pending_approval" // waits for a person only
	RunRunning         = "running"
	RunPaused          = "paused"
	RunCompleted       = "completed"
	RunFailed          = "failed"
	RunCancelled       = "cancelled"
	RunRejected        = "rejected"
)

// States of the approval of a run: RunApproval.state, and verdicts: Decision.verdict.
const (
	ApprovalPending  = "pending"
	ApprovalApproved = "approved"
	ApprovalRejected = "rejected"
)

// What becomes of a task of type approval that has waited too long: ApprovalSpec.on_timeout.
const (
	OnTimeoutReject  = "reject"
	OnTimeoutApprove = "approve"
)

// Ends of the workflow of a child run: RunEnd.status. Empty: the run could not be carried out.
const (
	RunEndCompleted  = "completed"
	RunEndFailed     = "failed"
	RunEndCancelled  = "cancelled"
	RunEndTerminated = "terminated"
)

// States of a node: Node.state. NodeStale is not stored: readers derive it from the silence of the node.
const (
	NodeActive   = "active"
	NodeStale    = "stale"
	NodeDraining = "draining"
	NodeOffline  = "offline"
)

// Outcomes of a dispatch for its node: ClaimRef.outcome. Empty: the dispatch never reached the node.
const (
	OutcomeRefused = "refused" // the node accepts nothing of the kind now; placement avoids it until its next heartbeat
	OutcomeLost    = "lost"    // the node was lost while the task ran
	OutcomeSuspect = "suspect" // the node did not pick the task up, or did not start it
	OutcomeSystem  = "system"  // the node is at fault
	OutcomeMoved   = "moved"   // handed back for another reason
	OutcomeDone    = "done"    // the task ran, with or without success
)

// States of a schedule, as lists show Schedule.paused.
const (
	ScheduleActive = "active"
	SchedulePaused = "paused"
)

// Kinds of events: Event.event.
const (
	EventSubmitted    = "submitted"
	EventQueued       = "queued"
	EventAssigned     = "assigned"
	EventStarted      = "started"
	EventPaused       = "paused"
	EventCompleted    = "completed"
	EventFailed       = "failed"
	EventRetried      = "retried"
	EventReassigned   = "reassigned"
	EventCancelled    = "cancelled"
	EventDeadLettered = "dead_lettered"
	EventSkipped      = "skipped"
	EventResumed      = "resumed"
	EventHeld         = "held"
	EventReleased     = "released"
	EventApproved     = "approved"
	EventRejected     = "rejected"
	EventRefused      = "refused" // a decision that no gateway has signed
	EventKilled       = "killed"
	EventExpanded     = "expanded"  // into instances
	EventSilent       = "silent"    // its node has sent no heartbeat in time; the run awaits its answer
	EventLost         = "lost"      // its node is away; the task is lost until the node is back
	EventFound        = "found"     // its node is back, and the task runs again
	EventRestarted    = "restarted" // a person has had its machine started again
	EventTurn         = "turn"      // a model has replied to an agent
	EventToolCall     = "tool_call" // an agent has called a tool
)

// Strategies of a RunConcurrency: what becomes of a run for which there is no place.
const (
	StrategyQueue   = "queue"   // it waits
	StrategyReplace = "replace" // the oldest open run is cancelled
	StrategySkip    = "skip"    // it ends as cancelled
	StrategyFail    = "fail"    // it ends as rejected
)

// What becomes of a start of a schedule while a run of it is open: ScheduleDefinition.overlap and Schedule.overlap.
const (
	OverlapSkip      = "skip"       // it is left out
	OverlapQueue     = "queue"      // it waits
	OverlapReplace   = "replace"    // the open run is cancelled first
	OverlapAllow     = "allow"      // both run
	OverlapBufferOne = "buffer_one" // one waits, and further ones are left out; only Temporal's own tools set it
	OverlapTerminate = "terminate"  // the open run is terminated first; only Temporal's own tools set it
)

// Outcomes of a trigger of a schedule: TriggerScheduleResponse.outcome.
const (
	TriggerStarted = "started"
	TriggerSkipped = "skipped" // a run is open
	TriggerQueued  = "queued"  // it starts later
)

// Triggers of a generation of a run.
const (
	TriggerSubmit   = "submit"   // a person or a program, on a gateway
	TriggerRerun    = "rerun"    // likewise, as a copy of another run
	TriggerRetry    = "retry"    // likewise, after the run had ended
	TriggerChild    = "child"    // a task of type run
	TriggerSchedule = "schedule" // a schedule in Temporal
	TriggerManual   = "manual"   // a person or a program, in Temporal
)

// Reasons of the state of a task or of a run.
const (
	ReasonWhen             = "when"              // skipped: the parents ended in another way than the task waits for
	ReasonCondition        = "condition"         // skipped: the condition was false
	ReasonConditionError   = "condition_error"   // failed: the condition could not be evaluated
	ReasonUpstream         = "upstream"          // skipped: because of how the parents ended
	ReasonHalt             = "halt"              // skipped: the run has halted
	ReasonMaxFailures      = "max_failures"      // skipped: too many other instances of the task have failed
	ReasonInstances        = "instances"         // failed: too many instances have failed
	ReasonFanOut           = "fan_out"           // failed: the number of instances could not be determined
	ReasonDeadline         = "deadline"          // failed: the deadline of the task has passed
	ReasonPlacementTimeout = "placement_timeout" // failed: no node could ever run it
	ReasonSystem           = "system"            // failed: the system is at fault
	ReasonContext          = "context"           // failed: its update of the context could not be merged
	ReasonRunCancelled     = "run_cancelled"     // cancelled: with its run
	ReasonTaskCancelled    = "task_cancelled"    // cancelled: alone
	ReasonKilled           = "killed"            // killed: by a person
	ReasonTaskFailed       = "task_failed"       // of a failed run
	ReasonCancelled        = "cancelled"         // of a cancelled run, task or attempt
	ReasonTerminated       = "terminated"        // of a failed run: its workflow was terminated
	ReasonConcurrency      = "concurrency"       // the run ended in favour of other runs of its workflow
	ReasonChildRun         = "child_run"         // of a task of type run: its run did not complete
	ReasonRejected         = "rejected"          // rejected by a person; of a task of type run: its run was rejected
	ReasonSuspended        = "suspended"         // paused: a person has suspended the task
	ReasonApproval         = "approval"          // paused: the task waits for a person
)

// Reasons of the end of an attempt.
const (
	ReasonTimeout     = "timeout"      // it took too long; of a run: its workflow timed out
	ReasonOOM         = "oom"          // it was out of memory
	ReasonSignal      = "signal"       // a signal ended its process
	ReasonExitCode    = "exit_code"    // its exit code was not 0
	ReasonOutput      = "output"       // its output could not be read
	ReasonNodeLost    = "node_lost"    // its node was lost
	ReasonExpression  = "expression"   // an expression in spec or env failed, and would fail again
	ReasonBadSpec     = "bad_spec"     // the spec with its expressions replaced is not valid
	ReasonStartFailed = "start_failed" // its process could not be started
	ReasonPayload     = "payload"      // a message to or from the node was too large or malformed
	ReasonMaxTurns    = "max_turns"    // the agent has taken as many turns as it may
	ReasonMaxCost     = "max_cost"     // the agent has cost as much as it may
	ReasonProvider    = "provider"     // the provider of the model refused, or did not answer for too long
	ReasonStalled     = "stalled"      // the program that leads the agent printed nothing for too long
	ReasonNoSession   = "no_session"   // no such session of an agent is on the node
	ReasonEvicted     = "evicted"      // the cluster has ended it: eviction, preemption, or the loss or shutdown of a node of the cluster
	ReasonIdle        = "idle"         // stopped: no session was open in it for its idle time-out
	ReasonDeleted     = "deleted"      // its Job, its pod or its namespace was deleted from outside
)

// Reasons of a dispatch that was moved.
const (
	ReasonNoRoom      = "no_room"       // the node had no room
	ReasonDraining    = "draining"      // the node is draining
	ReasonIncarnation = "incarnation"   // the worker of the node was started again
	ReasonNoExecutor  = "no_executor"   // the node runs no tasks of the type now
	ReasonNotPickedUp = "not_picked_up" // the node did not pick it up
	ReasonNotStarted  = "not_started"   // the node did not start it
	ReasonLeaseLost   = "lease_lost"    // the node could not renew its lease in time, and may have recorded a result; also of a task that is lost
	ReasonBatch       = "batch"         // the batch that it was in ended without it
	ReasonPaused      = "paused"        // its run was paused
	ReasonHeld        = "held"          // a person holds it back
	ReasonContinued   = "continued"     // its run continues as new
)

// Reasons for which a task waits to start: QueueGroup.reason. The first four are of those that wait for a node.
const (
	WaitAsking     = "asking"     // the placement queue has not answered yet
	WaitNext       = "next"       // a node fits
	WaitBusy       = "busy"       // what it needs is in use
	WaitImpossible = "impossible" // no node could ever fit
	WaitBackOff    = "back_off"   // until it is tried again after a failure
	WaitHeld       = "held"       // a person holds it back
	WaitPaused     = "paused"     // its run is paused
	WaitLock       = "lock"       // another task has its lock
	WaitLimit      = "limit"      // as much is under way as a limit of its task or run allows
	WaitTurn       = "turn"       // others of its run come first
)

// WaitReasons returns all reasons for which a task waits to start.
func WaitReasons() []string {
	return []string{WaitAsking, WaitNext, WaitBusy, WaitImpossible, WaitBackOff, WaitHeld, WaitPaused, WaitLock, WaitLimit, WaitTurn}
}

// WaitsForNode reports whether a task that waits for a reason waits for a node.
func WaitsForNode(reason string) bool {
	switch reason {
	case WaitAsking, WaitNext, WaitBusy, WaitImpossible:
		return true
	}
	return false
}

// TaskStates returns all states of a task, open ones first.
func TaskStates() []string { return append(OpenTaskStates(), TaskEndStates()...) }

// OpenTaskStates returns the states of a task that has not ended.
func OpenTaskStates() []string {
	return []string{TaskPending, TaskQueued, TaskAssigned, TaskRunning, TaskPaused}
}

// TaskEndStates returns the states that a task ends in.
func TaskEndStates() []string {
	return []string{
		TaskCompleted, TaskStopped, TaskSkipped, TaskFailed, TaskKilledOOM, TaskLost, TaskKilled, TaskDeadLetter, TaskRejected, TaskCancelled,
	}
}

// RetryableEndStates returns the ends of an attempt that can be retried.
func RetryableEndStates() []string { return []string{TaskFailed, TaskKilledOOM, TaskLost} }

// RunStates returns all states of a run.
func RunStates() []string {
	return []string{RunPending, RunPendingApproval, RunRunning, RunPaused, RunCompleted, RunFailed, RunCancelled, RunRejected}
}

// NodeStates returns all states of a node.
func NodeStates() []string { return []string{NodeActive, NodeStale, NodeDraining, NodeOffline} }

// EventWords returns all kinds of events.
func EventWords() []string {
	return []string{
		EventSubmitted, EventQueued, EventAssigned, EventStarted, EventPaused, EventCompleted, EventFailed, EventRetried, EventReassigned,
		EventCancelled, EventDeadLettered, EventSkipped, EventResumed, EventHeld, EventReleased, EventApproved, EventRejected, EventRefused, EventKilled,
		EventExpanded, EventSilent, EventLost, EventFound, EventRestarted, EventTurn, EventToolCall,
	}
}

// Strategies returns what may become of a run for which there is no place: all strategies of a RunConcurrency.
func Strategies() []string {
	return []string{StrategyQueue, StrategyReplace, StrategySkip, StrategyFail}
}

// Overlaps returns what a definition may say becomes of a start of a schedule while a run of it is open.
func Overlaps() []string {
	return []string{OverlapSkip, OverlapQueue, OverlapReplace, OverlapAllow}
}

// Triggers returns all triggers of a run.
func Triggers() []string {
	return []string{TriggerSubmit, TriggerRerun, TriggerRetry, TriggerChild, TriggerSchedule, TriggerManual}
}

// IsTaskTerminal reports whether a task or an instance in a state has ended.
func IsTaskTerminal(state string) bool {
	return IsTaskSuccess(state) || IsTaskFailure(state) || isTaskNeutral(state)
}

// IsTaskSuccess reports whether a task in a state has ended well.
func IsTaskSuccess(state string) bool { return state == TaskCompleted || state == TaskStopped }

// IsTaskFailure reports whether a state is a failure of the task itself.
func IsTaskFailure(state string) bool {
	switch state {
	case TaskFailed, TaskKilledOOM, TaskLost, TaskKilled, TaskDeadLetter, TaskRejected:
		return true
	}
	return false
}

// isTaskNeutral reports whether a task in a state has ended without a result of its own.
func isTaskNeutral(state string) bool { return state == TaskSkipped || state == TaskCancelled }

// IsTaskAway reports whether a task in a state, with a notice, is lost only until its node is back.
func IsTaskAway(state, notice string) bool { return state == TaskLost && notice != "" }

// HasTaskEnded reports whether a task or an instance has ended. One that is away with its node has not.
func HasTaskEnded(t interface {
	GetState() string
	GetNotice() string
}) bool {
	return IsTaskTerminal(t.GetState()) && !IsTaskAway(t.GetState(), t.GetNotice())
}

// HasTaskFailed reports whether a task or an instance has ended as a failure of its own. One that is away with its node has not.
func HasTaskFailed(t interface {
	GetState() string
	GetNotice() string
}) bool {
	return IsTaskFailure(t.GetState()) && HasTaskEnded(t)
}

// IsTaskWaiting reports whether a task in a state has neither started nor ended.
func IsTaskWaiting(state string) bool { return state == TaskPending || state == TaskQueued }

// IsTaskDispatched reports whether a task in a state has a node, a run of its own, a person who is asked, or instances.
func IsTaskDispatched(state string) bool { return state == TaskAssigned || state == TaskRunning }

// IsRetryableEnd reports whether an attempt that ended in a state can be retried.
func IsRetryableEnd(state string) bool {
	return state == TaskFailed || state == TaskKilledOOM || state == TaskLost
}

// IsFinalReason reports whether an attempt that failed for a reason would fail for it again, so that it is not retried.
func IsFinalReason(reason string) bool {
	switch reason {
	case ReasonExpression, ReasonBadSpec, ReasonMaxTurns, ReasonMaxCost:
		return true
	}
	return false
}

// IsRunTerminal reports whether a run in a state has ended.
func IsRunTerminal(state string) bool {
	switch state {
	case RunCompleted, RunFailed, RunCancelled, RunRejected:
		return true
	}
	return false
}

// IsEndedFromOutside reports whether a run with a reason was ended by Temporal, without a chance to record its end.
func IsEndedFromOutside(reason string) bool {
	return reason == ReasonTerminated || reason == ReasonTimeout
}

// Roles of a token: Token.role.
const (
	RoleViewer   = "viewer"
	RoleUser     = "user"
	RoleOperator = "operator"
	RoleAdmin    = "admin"
	RoleNode     = "node"
)

// States of a token: Token.state.
const (
	TokenActive  = "active"
	TokenExpired = "expired"
	TokenRevoked = "revoked"
)

// Results of calls: AuditEntry.result, which otherwise has the code of an error, and ListAuditEntriesRequest.result.
const (
	AuditOK      = "ok"
	AuditRefused = "refused" // for want of a token or of a role
	AuditFailed  = "failed"  // for another reason
)
