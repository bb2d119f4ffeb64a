package workflows

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// The time-outs of every activity call, in one place.
const (
	// unlimited stands where Temporal wants a limit and there is none.
	unlimited = 10 * 365 * 24 * time.Hour
	// heartbeatTimeout is how long a node may be silent before its attempts are lost.
	heartbeatTimeout = 15 * time.Second
	// pickupTimeout is how long an attempt waits in a node's queue before it is placed anew, where the options of the
	// run do not say. A live node takes up all that it is given, so that one that does not is as good as lost.
	pickupTimeout = 15 * time.Second
	// backstop is what an attempt gets beyond its own time-out, which the node enforces: a person may suspend it, and
	// its own time stands still then.
	backstop = 30 * 24 * time.Hour
	// awaitHeartbeat is how long AwaitPlacement may be silent before its worker counts as gone.
	awaitHeartbeat = 5 * time.Second
	// awaitRunsHeartbeat is how long AwaitRuns and AwaitAnswer may be silent.
	awaitRunsHeartbeat = 15 * time.Second
	// detachTry is how long a node may take for each try of Detach.
	detachTry = 5 * time.Second
	// steerTimeout is how long a node may take to suspend an attempt, or to go on with it, and steerTry each try.
	steerTimeout = 10 * time.Second
	steerTry     = 8 * time.Second
	// placementPause is the wait before placement is asked again when it could not answer.
	placementPause = time.Second
	// mustTimeout is how long a local activity may take with all its tries, in the first round; what is on its way to
	// the store is waited for in it. maxMustTimeout is the most in a later round.
	mustTimeout    = 10 * time.Second
	maxMustTimeout = 2 * time.Minute
)

// executeOptions are the options of one attempt of a task or instance of that name,
// or of the batch that it is the first of. It is not retried by Temporal:
// each retry is placed anew.
func executeOptions(req *v1.ExecuteRequest, name, queue string, priority int32, run *v1.RunOptions) workflow.ActivityOptions {
	heartbeat := run.GetHeartbeatTimeout().AsDuration()
	limit := unlimited
	if t := req.GetTimeout().AsDuration(); t > 0 {
		limit = t*time.Duration(max(1, len(req.GetBatch()))) + backstop
	}
	if heartbeat <= 0 {
		heartbeat = heartbeatTimeout
	}
	return workflow.ActivityOptions{
		TaskQueue:              queue,
		ActivityID:             names.AttemptID(name, req.GetClaim()),
		ScheduleToStartTimeout: max(heartbeat, cmp.Or(run.GetPickupTimeout().AsDuration(), pickupTimeout)),
		StartToCloseTimeout:    limit,
		HeartbeatTimeout:       heartbeat,
		WaitForCancellation:    true,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:                attemptSummary(name, req),
		Priority:               temporal.Priority{PriorityKey: priorityKey(priority)},
	}
}

// priorityKey turns a priority (0 to 10, higher is more urgent) into Temporal's
// key (1 is the most urgent).
func priorityKey(priority int32) int { return 11 - int(priority) }

// detachOptions are the options of Detach, which a live worker answers at once, and
// which may be done twice.
func detachOptions(node string, timeout time.Duration) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              names.NodeQueue(node, names.ControlLane),
		ScheduleToCloseTimeout: timeout,
		StartToCloseTimeout:    detachTry,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, MaximumInterval: 2 * time.Second},
		Summary:                "detach attempts on " + node,
	}
}

// steerOptions are the options of Steer. What it asks for may be done twice.
func steerOptions(node, summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              names.NodeQueue(node, names.ControlLane),
		ScheduleToCloseTimeout: steerTimeout,
		StartToCloseTimeout:    steerTry,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, MaximumInterval: 2 * time.Second},
		Summary:                summary + " on " + node,
	}
}

// awaitOptions are the options of AwaitPlacement, which ends when there is news
// and is started again by Temporal on another worker when its own is gone.
func awaitOptions() workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           names.ControlQueue,
		StartToCloseTimeout: unlimited,
		HeartbeatTimeout:    awaitHeartbeat,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    100 * time.Millisecond,
			BackoffCoefficient: 2,
			MaximumInterval:    5 * time.Second,
		},
		Summary: "wait for a node",
	}
}

// awaitRunsOptions are the options of AwaitRuns, which ends when one of so many runs has.
func awaitRunsOptions(runs int) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           names.ControlQueue,
		StartToCloseTimeout: unlimited,
		HeartbeatTimeout:    awaitRunsHeartbeat,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: 10 * time.Second},
		Summary:             fmt.Sprintf("wait for the end of %d workflows", runs),
	}
}

// answerOptions are the options of AwaitAnswer, which ends when the node of an attempt owes nothing more.
func answerOptions(name string, req *v1.ExecuteRequest) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           names.ControlQueue,
		StartToCloseTimeout: unlimited,
		HeartbeatTimeout:    awaitRunsHeartbeat,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: 10 * time.Second},
		Summary:             fmt.Sprintf("wait for what %s still says of %s", req.GetNode(), name),
	}
}

// mustOptions are the options of a local activity that decides something. Its tries are few
// and short, so that the run soon hears what else has happened; it waits for the store
// elsewhere. Each round gives a slow store twice the time.
func mustOptions(summary string, round int) workflow.LocalActivityOptions {
	return workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: min(mustTimeout<<min(round, 10), maxMustTimeout),
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumAttempts: 3},
		Summary:                summary,
	}
}

// tryOptions are the options of a local activity that the run can do without.
func tryOptions(summary string) workflow.LocalActivityOptions {
	return workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: mustTimeout,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumAttempts: 5},
		Summary:                summary,
	}
}

// probeOptions are the options of ProbeStore, which Temporal repeats until the store answers.
func probeOptions() workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           names.ControlQueue,
		StartToCloseTimeout: mustTimeout,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 5 * time.Second},
		Summary:             "wait for the store",
	}
}
