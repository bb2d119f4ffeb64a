package dag_test

import (
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// step applies one event. After the end of the run it is a no-op.
func (r *reference) step(name string, e dag.Event) {
	if r.over() {
		return
	}
	switch e := e.(type) {
	case dag.Cancel:
		r.cancelled = true
	case dag.Abort:
		if !r.cancelled {
			r.cancelled, r.aborted, r.abortReason = true, e.State, e.Reason
		}
	default:
		if t := r.tasks[name]; t != nil {
			r.taskStep(name, t, e)
		}
	}
	r.fixpoint()
}

func (r *reference) taskStep(name string, t *refTask, e dag.Event) {
	requested := func(claim int32) bool { return t.state == "queued" && !t.backoff && t.claim == claim }
	dispatched := wordIn(t.state, "assigned running") && len(t.instances) == 0
	switch e := e.(type) {
	case dag.Retry:
		if t.state == "dead_letter" && !r.cancelled && r.tasks[taskOf(name)].doom == "" {
			r.putBack([]string{name}, false, nil)
		}
	case dag.CancelTask:
		r.doom(name, "cancelled", "task_cancelled")
	case dag.Kill:
		r.doom(name, "killed", "killed")
	case dag.Expire:
		r.doom(name, "failed", "deadline")
	case dag.Evaluated:
		if t.asked == "condition" {
			switch {
			case e.Broken:
				r.unstarted(name, "failed", "system")
			case e.Err != "":
				r.unstarted(name, "failed", "condition_error")
			case e.Value:
				r.begin(name)
			default:
				r.skip(name, "condition")
			}
		}
	case dag.Expanded:
		if t.asked == "expand" {
			r.expanded(name, t, e)
		}
	case dag.Placed:
		if requested(e.Claim) {
			t.state, t.reason = "assigned", ""
		}
	case dag.Reused:
		if requested(e.Claim) {
			t.exit = e.ExitCode
			r.end(name, "completed", "")
		}
	case dag.Running:
		if t.state == "assigned" && t.claim == e.Claim {
			t.state = "running"
		}
	case dag.GaveUp:
		if requested(e.Claim) {
			r.end(name, "failed", "placement_timeout")
		}
	case dag.BackoffOver:
		if t.state == "queued" && t.backoff && t.claim == e.Claim {
			r.queue(name)
		}
	case dag.Ended:
		if dispatched && t.claim == e.Claim {
			r.attemptEnded(name, t, e)
		}
	}
}

func (r *reference) attemptEnded(name string, t *refTask, e dag.Ended) {
	retries := refRetries(r.def.Tasks[taskOf(name)])
	if e.State == "moved" && !r.cancelled && t.doom == "" && !t.remote {
		t.reason = e.Reason
		t.state = "queued" // if it may not start, fixpoint ends it
		if r.mayStart(name) {
			r.queue(name)
		}
		return
	}
	t.exit = e.ExitCode
	state := e.State
	if state == "moved" || state == "skipped" && !t.remote {
		state = "failed"
	}
	switch {
	case state == "completed":
		r.end(name, state, e.Reason)
	case t.doom != "":
		r.end(name, t.doom, t.doomReason)
	case r.cancelled:
		r.end(name, "cancelled", "run_cancelled")
	case !wordIn(state, "failed killed_oom lost") || e.NoRetry || retries == 0 || t.remote:
		r.end(name, state, e.Reason)
	case t.attempt == retries:
		r.end(name, "dead_letter", e.Reason)
	case !r.mayStart(name):
		r.end(name, state, e.Reason)
	default:
		t.state, t.reason, t.backoff = "queued", e.Reason, true
		t.failure, t.failureReason = state, e.Reason
		t.attempt++
	}
}

// refRetries returns how often a failed attempt of a task is retried.
func refRetries(def *v1.TaskDefinition) int32 {
	switch {
	case def.Retry == nil:
		return 3
	case def.Retry.Retryable != nil && !def.Retry.GetRetryable():
		return 0
	case def.Retry.MaxRetries == nil:
		return 3
	}
	return def.Retry.GetMaxRetries()
}

func (r *reference) expanded(name string, t *refTask, e dag.Expanded) {
	switch {
	case e.Broken:
		r.end(name, "failed", "system")
	case e.Err != "":
		r.end(name, "failed", "fan_out")
	case e.Count == 0:
		t.exit = 0
		r.end(name, "completed", "")
	case e.Partitioned:
		t.state, t.reason, t.asked, t.fanned, t.remote = "running", "", "", true, true
		t.claim++
	default:
		t.state, t.reason, t.asked, t.fanned = "running", "", "", true
		for k := range e.Count {
			one := fmt.Sprintf("%s[%d]", name, e.From+k)
			t.instances = append(t.instances, one)
			r.tasks[one] = &refTask{state: "pending", claim: t.claim, exit: -1}
		}
	}
}

// doom ends a waiting task at once, and marks a running one to end that way unless it completes.
func (r *reference) doom(name, state, reason string) {
	t := r.tasks[name]
	switch {
	case r.cancelled || r.terminal(name) || t.doom != "":
	case len(t.instances) > 0:
		t.doom, t.doomReason = state, reason
		for _, one := range t.instances {
			r.doom(one, state, reason)
		}
	case wordIn(t.state, "pending queued"):
		r.end(name, state, reason)
	default:
		t.doom, t.doomReason = state, reason
	}
}
