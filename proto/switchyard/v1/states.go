package switchyardv1

// States of a task or of an instance, the values of Task.state and Instance.state.
const (
	TaskPending  = "pending"  // waits for its upstream tasks or its condition
	TaskQueued   = "queued"   // waits for a node, or for the end of a back-off
	TaskAssigned = "assigned" // dispatched to a node
	TaskRunning  = "running"  // its process has started
	TaskPaused   = "paused"   // waits for a person, or is suspended by a person

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

// AttemptMoved is the end of an attempt whose task is placed again. It is not a state of a task.
const AttemptMoved = "moved"

// AttemptDetached is the end of an attempt's activity when the attempt continues without the activity. It is not a state of a
// task.
const AttemptDetached = "detached"

// States of a run, the values of Run.state.
const (
	RunPending         = "pending"          // no control process has started it yet
	RunPendingApproval = "pending_approval" // waits only for a person
	RunRunning         = "running"
	RunPaused          = "paused"
	RunCompleted       = "completed"
	RunFailed          = "failed"
	RunCancelled       = "cancelled"
	RunRejected        = "rejected"
)

// States of the approval of a run (RunApproval.state) and verdicts (Decision.verdict).
const (
	ApprovalPending  = "pending"
	ApprovalApproved = "approved"
	ApprovalRejected = "rejected"
)

// NotSubmitter is the value of Approvers.not.
const NotSubmitter = "submitter"

// What happens to a task of type approval that has waited too long, the values of ApprovalSpec.on_timeout.
const (
	OnTimeoutReject  = "reject"
	OnTimeoutApprove = "approve"
)

// Ends of the workflow of a child run, the values of RunEnd.status. "" means that the run could not be carried out.
const (
	RunEndCompleted  = "completed"
	RunEndFailed     = "failed"
	RunEndCancelled  = "cancelled"
	RunEndTerminated = "terminated"
)

// States of a node, the values of Node.state. NodeStale is not stored: readers derive it from the node's silence.
const (
	NodeActive   = "active"
	NodeStale    = "stale"
	NodeDraining = "draining"
	// NodeRestarting means that the worker has stopped, and has left attempts running for the next worker of the node.
	NodeRestarting = "restarting"
	NodeOffline    = "offline"
)

// Outcomes of a dispatch for its node, the values of ClaimRef.outcome. "" means that the dispatch never reached the node.
const (
	OutcomeRefused = "refused" // the node has no room for such a task; placement avoids it until its next heartbeat
	OutcomeLost    = "lost"    // the node was lost while the task ran
	OutcomeSuspect = "suspect" // the node did not pick the task up, or did not start it
	OutcomeSystem  = "system"  // the attempt failed because of the node
	OutcomeMoved   = "moved"   // handed back for another reason
	OutcomeDone    = "done"    // the task ran, successfully or not
)

// States of a schedule in lists, derived from Schedule.paused.
const (
	ScheduleActive = "active"
	SchedulePaused = "paused"
)

// Kinds of events, the values of Event.event.
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
	EventFinally      = "finally" // the tasks of the run have ended, and `finally` begins
	EventHeld         = "held"
	EventReleased     = "released"
	EventApproved     = "approved"
	EventRejected     = "rejected"
	EventRefused      = "refused" // a decision that no gateway has signed
	EventKilled       = "killed"
	EventExpanded     = "expanded"  // into instances
	EventSilent       = "silent"    // its node has not sent a heartbeat in time; the run still waits for the attempt
	EventLate         = "late"      // it has not ended within its expected time, and continues
	EventLost         = "lost"      // its node is away; the task is lost until the node is back
	EventFound        = "found"     // its node is back, and the task runs again
	EventRestarted    = "restarted" // a person has restarted its machine
	EventReminded     = "reminded"  // it still waits for a person
	EventTurn         = "turn"      // a model has replied to an agent
	EventToolCall     = "tool_call" // an agent has called a tool
	EventNotified     = "notified"  // a target of notifications was told
	EventNotifyFailed = "notify_failed"
)

// Events that people can be told about, the values of Notification.on.
const (
	NotifyFailed    = "failed" // also rejected, and terminated
	NotifyCompleted = "completed"
	NotifyCancelled = "cancelled"
	NotifyRecovered = "recovered" // completed after the run before it had failed
	NotifyLate      = "late"
	NotifyApproval  = "waiting_approval"
	NotifyReminded  = "reminded" // for the entries for waiting_approval
	// NotifyDeadLetter is told once in a generation.
	NotifyDeadLetter = "dead_letter"
)

// NotifyEvents returns all events that people can be told about.
func NotifyEvents() []string {
	return []string{NotifyFailed, NotifyCompleted, NotifyCancelled, NotifyRecovered, NotifyLate, NotifyApproval, NotifyDeadLetter}
}

// NotifyEvent returns the event with which a run ends in a state.
func NotifyEvent(state string) string {
	switch state {
	case RunCompleted:
		return NotifyCompleted
	case RunCancelled:
		return NotifyCancelled
	}
	return NotifyFailed
}

// Strategies of a RunConcurrency: what happens to a run that exceeds the limit.
const (
	StrategyQueue   = "queue"   // it waits
	StrategyReplace = "replace" // the oldest open run is cancelled
	StrategySkip    = "skip"    // it ends as cancelled
	StrategyFail    = "fail"    // it ends as rejected
)

// What happens when a schedule is due while one of its runs is open, the values of ScheduleDefinition.overlap and
// Schedule.overlap.
const (
	OverlapSkip      = "skip"       // the start is skipped
	OverlapQueue     = "queue"      // the start waits
	OverlapReplace   = "replace"    // the open run is cancelled first
	OverlapAllow     = "allow"      // both run
	OverlapBufferOne = "buffer_one" // one start waits, and further ones are skipped; only Temporal's own tools set it
	OverlapTerminate = "terminate"  // the open run is terminated first; only Temporal's own tools set it
)

// Outcomes of a trigger of a schedule, the values of TriggerScheduleResponse.outcome.
const (
	TriggerStarted = "started"
	TriggerSkipped = "skipped" // a run is open
	TriggerQueued  = "queued"  // the run starts later
)

// Triggers of a generation of a run.
const (
	TriggerSubmit   = "submit"   // a person or a program, through a gateway
	TriggerRerun    = "rerun"    // likewise, as a copy of another run
	TriggerRetry    = "retry"    // likewise, after the run had ended
	TriggerChild    = "child"    // a task of type run
	TriggerSchedule = "schedule" // a schedule in Temporal
	TriggerManual   = "manual"   // a person or a program, in Temporal
)

// Reasons for the state of a task or of a run.
const (
	ReasonWhen             = "when"              // skipped: the upstream tasks ended in another way than the task waits for
	ReasonCondition        = "condition"         // skipped: the condition was false
	ReasonConditionError   = "condition_error"   // failed: the condition could not be evaluated
	ReasonUpstream         = "upstream"          // skipped: because of how the upstream tasks ended
	ReasonHalt             = "halt"              // skipped: the run has halted
	ReasonMaxFailures      = "max_failures"      // skipped: too many other instances of the task have failed
	ReasonInstances        = "instances"         // failed: too many instances have failed
	ReasonFanOut           = "fan_out"           // failed: the number of instances could not be determined
	ReasonDeadline         = "deadline"          // failed: the deadline of the task has passed
	ReasonPlacementTimeout = "placement_timeout" // failed: no node could ever run it
	ReasonSystem           = "system"            // failed: because of the system
	ReasonContext          = "context"           // failed: its update of the context could not be merged
	ReasonRunCancelled     = "run_cancelled"     // cancelled: with its run
	ReasonTaskCancelled    = "task_cancelled"    // cancelled: alone
	ReasonKilled           = "killed"            // killed: by a person
	ReasonTaskFailed       = "task_failed"       // failed run: a task has failed
	ReasonFinallyFailed    = "finally_failed"    // failed run: its tasks completed, and one in `finally` has failed
	ReasonFinallyTimeout   = "finally_timeout"   // cancelled: `finally` has taken too long
	ReasonCancelled        = "cancelled"         // run, task or attempt was cancelled
	ReasonTerminated       = "terminated"        // failed run: its workflow was terminated
	ReasonConcurrency      = "concurrency"       // the run ended in favour of other runs of its workflow
	ReasonDeadlock         = "deadlock"          // failed: it needs a lock that is held above its run until the run has ended
	ReasonChildRun         = "child_run"         // task of type run: its run did not complete
	ReasonRejected         = "rejected"          // rejected by a person; task of type run: its run was rejected
	ReasonBadDefinition    = "bad_definition"    // failed run: its definition cannot be read
	ReasonBadState         = "bad_state"         // failed run: what its previous execution has left cannot be read
	ReasonNodeSilent       = "node_silent"       // cancelled: its node is silent, and `finally` has begun without it
	ReasonSuspended        = "suspended"         // paused: a person has suspended the task
	ReasonApproval         = "approval"          // paused: the task waits for a person
)

// Reasons for the end of an attempt.
const (
	ReasonTimeout       = "timeout"        // it took too long; run: its workflow timed out
	ReasonOOM           = "oom"            // it ran out of memory
	ReasonSignal        = "signal"         // a signal ended its process
	ReasonExitCode      = "exit_code"      // its exit code was not 0
	ReasonArtifacts     = "artifacts"      // its artifacts could not be stored or fetched
	ReasonWorkspace     = "workspace"      // the folder that it shares is lost with its node, or was removed
	ReasonArtifactQuota = "artifact_quota" // its artifacts would exceed the quota of the run
	ReasonOutput        = "output"         // its output could not be read
	ReasonNodeLost      = "node_lost"      // its node was lost
	ReasonExpression    = "expression"     // an expression in spec or env failed, and would fail again
	ReasonBadSpec       = "bad_spec"       // the spec with its expressions replaced is not valid
	ReasonStartFailed   = "start_failed"   // its process could not be started
	ReasonPayload       = "payload"        // a message to or from the node was too large or malformed
	ReasonMaxTurns      = "max_turns"      // the agent has reached its limit of turns
	ReasonMaxCost       = "max_cost"       // the agent has reached its limit of cost
	ReasonProvider      = "provider"       // the model provider refused, or did not reply for too long
	ReasonStalled       = "stalled"        // the program that runs the agent printed nothing for too long
	ReasonNoSession     = "no_session"     // the node does not have the agent session
	ReasonEvicted       = "evicted"        // the cluster has ended it: eviction, preemption, or the loss or shutdown of a node of the cluster
	ReasonIdle          = "idle"           // stopped: no session was open in it for its idle time-out
	ReasonDeleted       = "deleted"        // its Job, its pod or its namespace was deleted from outside
)

// Reasons for which a dispatch was moved.
const (
	ReasonNoRoom      = "no_room"       // the node had no room
	ReasonDraining    = "draining"      // the node is draining
	ReasonIncarnation = "incarnation"   // the worker of the node was restarted
	ReasonNoExecutor  = "no_executor"   // the node runs no tasks of the type now
	ReasonNotPickedUp = "not_picked_up" // the node did not pick it up
	ReasonNotStarted  = "not_started"   // the node did not start it
	ReasonLeaseLost   = "lease_lost"    // the node could not renew its lease in time, and may have recorded a result; also the reason of a lost task
	ReasonBatch       = "batch"         // its batch ended without it
	ReasonGang        = "gang"          // another member of its gang did not start or did not complete; also the reason of a failed task
	ReasonPaused      = "paused"        // its run was paused
	ReasonHeld        = "held"          // a person holds it back
	ReasonContinued   = "continued"     // its run continues as new
)

// Reasons for which a task waits to start, the values of QueueGroup.reason. The first five apply to tasks that wait for a node.
const (
	WaitAsking     = "asking"     // the placement queue has not answered yet
	WaitNext       = "next"       // a node fits
	WaitBusy       = "busy"       // what it needs is in use
	WaitAway       = "away"       // a node that could run it is restarting or offline
	WaitImpossible = "impossible" // no node could ever fit
	WaitBackOff    = "back_off"   // until its retry after a failure
	WaitHeld       = "held"       // a person holds it back
	WaitPaused     = "paused"     // its run is paused
	WaitLock       = "lock"       // another task holds its lock
	WaitLimit      = "limit"      // a limit of its task or run is reached
	WaitTurn       = "turn"       // other tasks of its run come first
)

// WaitReasons returns all reasons for which a task waits to start.
func WaitReasons() []string {
	return []string{WaitAsking, WaitNext, WaitBusy, WaitAway, WaitImpossible, WaitBackOff, WaitHeld, WaitPaused, WaitLock, WaitLimit, WaitTurn}
}

// WaitsForNode reports whether a task that waits for this reason waits for a node.
func WaitsForNode(reason string) bool {
	switch reason {
	case WaitAsking, WaitNext, WaitBusy, WaitAway, WaitImpossible:
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

// TaskEndStates returns the states in which a task ends.
func TaskEndStates() []string {
	return []string{
		TaskCompleted, TaskStopped, TaskSkipped, TaskFailed, TaskKilledOOM, TaskLost, TaskKilled, TaskDeadLetter, TaskRejected, TaskCancelled,
	}
}

// RetryableEndStates returns the end states of an attempt that allow a retry.
func RetryableEndStates() []string { return []string{TaskFailed, TaskKilledOOM, TaskLost} }

// RunStates returns all states of a run.
func RunStates() []string {
	return append([]string{RunPending, RunPendingApproval, RunRunning, RunPaused}, RunEndStates()...)
}

// RunReasons returns the reasons for which a run ends without completing.
func RunReasons() []string {
	return []string{
		ReasonTaskFailed, ReasonFinallyFailed, ReasonDeadline, ReasonCancelled, ReasonRejected, ReasonConcurrency, ReasonDeadlock, ReasonTerminated, ReasonTimeout,
		ReasonSystem, ReasonBadDefinition, ReasonBadState,
	}
}

// RunEndStates returns the states in which a run ends.
func RunEndStates() []string { return []string{RunCompleted, RunFailed, RunCancelled, RunRejected} }

// NodeStates returns all states of a node.
func NodeStates() []string {
	return []string{NodeActive, NodeStale, NodeDraining, NodeRestarting, NodeOffline}
}

// EventWords returns all kinds of events.
func EventWords() []string {
	return []string{
		EventSubmitted, EventQueued, EventAssigned, EventStarted, EventPaused, EventCompleted, EventFailed, EventRetried, EventReassigned,
		EventCancelled, EventDeadLettered, EventSkipped, EventResumed, EventHeld, EventReleased, EventApproved, EventRejected, EventRefused, EventKilled,
		EventExpanded, EventSilent, EventLate, EventLost, EventFound, EventRestarted, EventReminded, EventTurn, EventToolCall,
		EventNotified, EventNotifyFailed,
	}
}

// Strategies returns all strategies of a RunConcurrency.
func Strategies() []string {
	return []string{StrategyQueue, StrategyReplace, StrategySkip, StrategyFail}
}

// Overlaps returns the values that a definition may use for ScheduleDefinition.overlap.
func Overlaps() []string {
	return []string{OverlapSkip, OverlapQueue, OverlapReplace, OverlapAllow}
}

// Triggers returns all triggers of a run.
func Triggers() []string {
	return []string{TriggerSubmit, TriggerRerun, TriggerRetry, TriggerChild, TriggerSchedule, TriggerManual}
}

// IsGatewayTrigger reports whether a generation with this trigger was started through a gateway.
func IsGatewayTrigger(trigger string) bool {
	return trigger == TriggerSubmit || trigger == TriggerRerun || trigger == TriggerRetry
}

// IsTaskTerminal reports whether a task or an instance in this state has ended.
func IsTaskTerminal(state string) bool {
	return IsTaskSuccess(state) || IsTaskFailure(state) || isTaskNeutral(state)
}

// IsTaskSuccess reports whether a task in this state has ended successfully.
func IsTaskSuccess(state string) bool { return state == TaskCompleted || state == TaskStopped }

// IsTaskFailure reports whether the state is a failure of the task itself.
func IsTaskFailure(state string) bool {
	switch state {
	case TaskFailed, TaskKilledOOM, TaskLost, TaskKilled, TaskDeadLetter, TaskRejected:
		return true
	}
	return false
}

// isTaskNeutral reports whether a task in this state has ended without a result of its own.
func isTaskNeutral(state string) bool { return state == TaskSkipped || state == TaskCancelled }

// IsTaskAway reports whether a task with this state and notice is lost only until its node is back.
func IsTaskAway(state, notice string) bool { return state == TaskLost && notice != "" }

// HasTaskEnded reports whether a task or an instance has ended. A task that is away with its node has not ended.
func HasTaskEnded(t interface {
	GetState() string
	GetNotice() string
}) bool {
	return IsTaskTerminal(t.GetState()) && !IsTaskAway(t.GetState(), t.GetNotice())
}

// HasTaskFailed reports whether a task or an instance has ended with a failure of its own. A task that is away with its node has
// not ended.
func HasTaskFailed(t interface {
	GetState() string
	GetNotice() string
}) bool {
	return IsTaskFailure(t.GetState()) && HasTaskEnded(t)
}

// IsTaskWaiting reports whether a task in this state has neither started nor ended.
func IsTaskWaiting(state string) bool { return state == TaskPending || state == TaskQueued }

// IsTaskDispatched reports whether a task in this state has been dispatched: to a node, to a run of its own, to a person who
// must decide, or to its instances.
func IsTaskDispatched(state string) bool { return state == TaskAssigned || state == TaskRunning }

// IsRetryableEnd reports whether an attempt that ended in this state can be retried.
func IsRetryableEnd(state string) bool {
	return state == TaskFailed || state == TaskKilledOOM || state == TaskLost
}

// IsEndedByPerson reports whether a person has ended a task in this state, so that it is not retried.
func IsEndedByPerson(state string) bool {
	return state == TaskKilled || state == TaskRejected || state == TaskCancelled
}

// IsFinalReason reports whether a task or run that failed for this reason would fail for it again, so that neither is retried.
func IsFinalReason(reason string) bool {
	switch reason {
	case ReasonExpression, ReasonConditionError, ReasonFanOut, ReasonBadSpec, ReasonArtifactQuota, ReasonMaxTurns, ReasonMaxCost, ReasonRejected, ReasonDeadlock:
		return true
	}
	return false
}

// IsRunTerminal reports whether a run in this state has ended.
func IsRunTerminal(state string) bool {
	switch state {
	case RunCompleted, RunFailed, RunCancelled, RunRejected:
		return true
	}
	return false
}

// IsEndedFromOutside reports whether a run with this reason was ended by Temporal, without a chance to record its end.
func IsEndedFromOutside(reason string) bool {
	return reason == ReasonTerminated || reason == ReasonTimeout
}

// Roles of a token, the values of Token.role.
const (
	RoleViewer   = "viewer"
	RoleUser     = "user"
	RoleOperator = "operator"
	RoleAdmin    = "admin"
	RoleNode     = "node"
)

// States of a token, the values of Token.state.
const (
	TokenActive  = "active"
	TokenExpired = "expired"
	TokenRevoked = "revoked"
)

// Results of calls, the values of AuditEntry.result, which holds an error code for other results, and of
// ListAuditEntriesRequest.result.
const (
	AuditOK      = "ok"
	AuditRefused = "refused" // because the token or the role was insufficient
	AuditFailed  = "failed"  // for any other reason
)
