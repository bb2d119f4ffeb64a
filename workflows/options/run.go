package options

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// These are the time-outs of all activity calls.
const (
	// pickupTimeout is how long an attempt waits in a node's queue before it is placed again, unless the options of the run set
	// another time. A live node picks up everything that it is given, so one that does not is as good as lost.
	pickupTimeout = 15 * time.Second
	// backstop is added to an attempt's own time-out, which the node enforces, because the attempt's time stands still while a
	// person has suspended it.
	backstop = 30 * 24 * time.Hour
	// awaitHeartbeat is how long AwaitPlacement may be silent before its worker counts as lost.
	awaitHeartbeat = 5 * time.Second
	// awaitRunsHeartbeat is how long AwaitRuns and AwaitAnswer may be silent.
	awaitRunsHeartbeat = 15 * time.Second
	// detachTry is how long a node may take for one attempt at Detach.
	detachTry = 5 * time.Second
	// steerTimeout is how long a node may take to suspend or resume an attempt, and steerTry how long each try may take.
	steerTimeout = 10 * time.Second
	steerTry     = 8 * time.Second
	// reserveTimeout is how long a node may take to reserve the place of a member of a gang, and reserveTry how long each try may
	// take. A node that waits for room answers sooner.
	reserveTimeout = 30 * time.Second
	reserveTry     = 12 * time.Second
	// giveUpTimeout is how long a node may take to give a reserved place up, and how long the end of a run waits for that.
	giveUpTimeout = 5 * time.Second
	// restartTimeout is how long a node may take to restart the machine of an attempt, which is asked to shut down first.
	restartTimeout = time.Minute
	// PlacementPause is the wait before placement is called again after it could not answer.
	PlacementPause = time.Second
	// maxMustTimeout is the longest time-out of a local activity with all its attempts; the first round has LocalTimeout.
	maxMustTimeout = 2 * time.Minute
)

// Execute returns the options of one attempt of a task or instance, or of the batch that begins with it. Temporal does not
// retry it, because each retry is placed anew.
func Execute(req *historyv1.ExecuteRequest, name, queue string, priority int32, run *v1.RunOptions) workflow.ActivityOptions {
	heartbeat := run.GetHeartbeatTimeout().AsDuration()
	limit := Unlimited
	if t := req.GetTimeout().AsDuration(); t > 0 && !v1.Lasts(req.GetType()) {
		limit = t*time.Duration(max(1, len(req.GetBatch()))) + backstop
	}
	if heartbeat <= 0 {
		heartbeat = HeartbeatTimeout
	}
	return workflow.ActivityOptions{
		TaskQueue:              queue,
		ActivityID:             names.AttemptID(name, req.GetClaim()),
		ScheduleToStartTimeout: max(heartbeat, pickup(req.GetType(), run)),
		StartToCloseTimeout:    limit,
		HeartbeatTimeout:       heartbeat,
		WaitForCancellation:    true,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:                attemptSummary(name, req),
		Priority:               temporal.Priority{PriorityKey: priorityKey(priority)},
	}
}

// pickup returns how long an attempt of a type waits in the queue of its node.
func pickup(taskType string, run *v1.RunOptions) time.Duration {
	return cmp.Or(run.GetPickupTimeouts()[taskType].AsDuration(), run.GetPickupTimeout().AsDuration(), pickupTimeout)
}

// priorityKey converts a priority (0 to 10, higher is more urgent) to Temporal's key (1 is the most urgent).
func priorityKey(priority int32) int { return 11 - int(priority) }

// Detach returns the options of Detach, which a live worker answers at once and which is idempotent.
func Detach(node string, timeout time.Duration) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              names.NodeQueue(node, names.ControlLane),
		ScheduleToCloseTimeout: timeout,
		StartToCloseTimeout:    detachTry,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, MaximumInterval: 2 * time.Second},
		Summary:                "detach attempts on " + node,
	}
}

// Steer returns the options of Steer. Its actions are idempotent.
func Steer(node, summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              names.NodeQueue(node, names.ControlLane),
		ScheduleToCloseTimeout: steerTimeout,
		StartToCloseTimeout:    steerTry,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, MaximumInterval: 2 * time.Second},
		Summary:                summary + " on " + node,
	}
}

// Reserve returns the options of Reserve, which is idempotent.
func Reserve(node, name string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              names.NodeQueue(node, names.ControlLane),
		ScheduleToCloseTimeout: reserveTimeout,
		StartToCloseTimeout:    reserveTry,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, MaximumInterval: 2 * time.Second},
		Summary:                "reserve a place for " + name + " on " + node,
	}
}

// GiveUp returns the options of Reserve for a place that is not needed.
func GiveUp(node, name string) workflow.ActivityOptions {
	options := Reserve(node, name)
	options.ScheduleToCloseTimeout, options.Summary = giveUpTimeout, "give the place of "+name+" on "+node+" up"
	return options
}

// Restart returns the options of Steer for the restart of a machine, which is not retried. grace is how long the machine may take
// to shut down, or 0 for the usual time.
func Restart(node, summary string, grace time.Duration) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              names.NodeQueue(node, names.ControlLane),
		ScheduleToStartTimeout: steerTimeout,
		StartToCloseTimeout:    restartTimeout + grace,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:                summary + " on " + node,
	}
}

// Find returns the options of Steer for an attempt that is away with its node. Temporal delivers it when the node is back,
// however long that takes.
func Find(node, name string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           names.NodeQueue(node, names.ControlLane),
		StartToCloseTimeout: steerTry,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, MaximumInterval: 5 * time.Second},
		Summary:             fmt.Sprintf("wait for node %s, which has %s", node, name),
	}
}

// AwaitPlacement returns the options of AwaitPlacement. It ends when there is news, and Temporal restarts it on another worker
// if its own is lost.
func AwaitPlacement() workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           names.ControlQueue,
		StartToCloseTimeout: Unlimited,
		HeartbeatTimeout:    awaitHeartbeat,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    100 * time.Millisecond,
			BackoffCoefficient: 2,
			MaximumInterval:    5 * time.Second,
		},
		Summary: "wait for a node",
	}
}

// AwaitRuns returns the options of AwaitRuns, which ends when one of its runs has ended.
func AwaitRuns(runs int) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           names.ControlQueue,
		StartToCloseTimeout: Unlimited,
		HeartbeatTimeout:    awaitRunsHeartbeat,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: 10 * time.Second},
		Summary:             fmt.Sprintf("wait for the end of %d workflows", runs),
	}
}

// AwaitAnswer returns the options of AwaitAnswer, which ends when the node of an attempt has nothing left to deliver.
func AwaitAnswer(name string, req *historyv1.ExecuteRequest) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           names.ControlQueue,
		StartToCloseTimeout: Unlimited,
		HeartbeatTimeout:    awaitRunsHeartbeat,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: 10 * time.Second},
		Summary:             fmt.Sprintf("wait for what %s still reports of %s", req.GetNode(), name),
	}
}

// Must returns the options of a local activity that the run depends on. Its attempts are few and short, so that the run soon
// sees what else has happened; the run waits for the store elsewhere. Each round doubles the time for a slow store.
func Must(summary string, round int) workflow.LocalActivityOptions {
	return workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: min(LocalTimeout<<min(round, 10), maxMustTimeout),
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumAttempts: 3},
		Summary:                summary,
	}
}

// ProbeStore returns the options of ProbeStore, which Temporal retries until the store answers.
func ProbeStore() workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           names.ControlQueue,
		StartToCloseTimeout: LocalTimeout,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 5 * time.Second},
		Summary:             "wait for the store",
	}
}

// attemptSummary returns the summary of an attempt for the Web UI.
func attemptSummary(name string, req *historyv1.ExecuteRequest) string {
	text := fmt.Sprintf("%s on %s", name, req.GetNode())
	if n := len(req.GetBatch()); n > 1 {
		text = fmt.Sprintf("%s and %d more on %s", name, n-1, req.GetNode())
	}
	if req.GetAttempt() > 0 {
		text += fmt.Sprintf(", attempt %d", req.GetAttempt())
	}
	return text
}
