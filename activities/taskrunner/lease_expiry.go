package taskrunner

import (
	"fmt"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/registry"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"
)

// The lease of an attempt expires when Temporal has not acknowledged a heartbeat of it for too long. Another node may then
// be given the task, so the attempt ends itself first:
//
//   - A live worker asks the attempt to stop (see heartbeat.go). The executor kills what is left (see executor.Lease).
//   - If the worker is dead or stalled, a watchdog or a Keeper ends the attempt (see orphan_overdue.go).
//   - A detached attempt has a longer lease, which its run waits for (see detach.go). Lasting attempts have none. A remote
//     attempt is left running for another node (see remote.go).
//
// The run receives "moved" with the reason lease_lost from the node, or a heartbeat time-out from Temporal. Either way
// AwaitAnswer (see lost_attempt.go) first waits for the result that the node may have recorded. Without a result,
// workflows/core/flight/outcome.go decides: a lease lost on a live node does not count as an attempt of a task that may be
// retried, up to three times in a row, and makes any other task lost. A lease lost with its node counts as an attempt.

// terms holds the durations of the heartbeats of an attempt. They all follow from the heartbeat time-out with which its activity
// began, after which the server gives the task to another node. An older attempt may be silent for longer (see lease_growth.go).
//
//	sent: the newest acknowledged beat
//	│    beat     beat     beat        0.6          0.8           1
//	├────┼────────┼────────┼───────────┼────────────┼─────────────┤
//	                                   SIGTERM      SIGKILL       starts elsewhere
type terms struct {
	// beat is the time between heartbeats, and again the time to the next try after an unacknowledged one.
	beat, again time.Duration
	// answer bounds one heartbeat call.
	answer time.Duration
}

// defaultHeartbeatTimeout applies to an activity without a heartbeat time-out.
const defaultHeartbeatTimeout = 15 * time.Second

// longestAgain and longestAnswer cap terms, so that the server is asked often even under a long heartbeat time-out.
const longestAgain, longestAnswer = 2 * time.Second, 10 * time.Second

// termsOf returns the terms for a heartbeat time-out of an attempt and the longest time between heartbeats that the node
// allows. 0 means no upper bound on the interval.
func termsOf(timeout, interval time.Duration) terms {
	if interval <= 0 {
		interval = timeout
	}
	return terms{
		beat:   min(interval, timeout/5),
		again:  min(timeout/30, longestAgain),
		answer: min(timeout/6, longestAnswer),
	}
}

// removeMargin is how long before the server reassigns a task its attempt is ended, provided that the attempt then runs at
// least as long as under a live worker.
const removeMargin = 3 * time.Second

// endAt returns when an unattended attempt must be ended, so that nothing is left of it when the server gives its task to
// another node.
func (l *orphan) endAt() time.Time {
	stop, kill := l.ends()
	end := l.beatAt.Add(max(stop, min(kill, l.state.inUse()-removeMargin)))
	if l.state.AloneUntil.After(end) {
		end = l.state.AloneUntil
	}
	return end
}

// hasExpired reports whether an attempt that ended like this has lost its lease. The watchdog may have ended its program. A
// program that finished before it was asked to stop counts for as long as the task cannot run elsewhere.
func hasExpired(lease *executor.Lease, r executor.Result, err error) bool {
	done := err == nil && !r.Stopped && r.ExitCode == 0 && r.Failure == nil
	return lease.Over() || lease.Lost() && !done
}

// lives reports whether the worker that received the attempt has sent a snapshot since the attempt was lost.
func (d *debtor) lives(e *registry.Entry) bool {
	return e != nil && e.Record.GetState() != v1.NodeOffline && d.isNews(e.Snapshot) &&
		d.req.GetIncarnation() != "" && e.Snapshot.GetIncarnation() == d.req.GetIncarnation()
}

// logLostLease logs that the attempt was ended because its lease has expired.
func (a *attempt) logLostLease() {
	name, silence := a.members[0].name, executor.Now().Sub(a.beats.lease.Begin()).Round(100*time.Millisecond)
	if len(a.req.GetBatch()) > 0 {
		name = batchName(a.req)
	}
	a.node.Logger.Warn("a task was ended because its lease ended: no heartbeat was acknowledged by Temporal",
		"run", a.req.GetRunId(), "task", name, "attempt", a.req.GetAttempt(), "for", silence)
}

// leaseText returns why an attempt on a live node has lost its lease. outage is when Temporal's last outage ended, or the
// zero time.
func leaseText(node string, outage time.Time) string {
	if outage.IsZero() {
		return fmt.Sprintf("node %s and Temporal did not reach each other, so that the attempt lost its lease and ended itself", node)
	}
	return fmt.Sprintf("the control plane was away until %s, so that the attempt on node %s lost its lease and ended itself", phrase.Clock(outage), node)
}
