package runlogs

import (
	"slices"

	"switchyard/activities/logs"
	v1 "switchyard/proto/switchyard/v1"
)

// All dispatches of an attempt that runs outside of the nodes share the log of the first one that has printed. A task that is
// put back begins with attempt 0 again, though, in a log of its own, and the run does not say which of both a dispatch is. So
// a shared log is followed to its end, and then that of the newest dispatch, if there is one.

// isShared reports whether a later dispatch may continue the log of an earlier one.
func isShared(taskType string, earlier, later logs.Attempt) bool {
	return v1.IsRemote(taskType) && earlier.Generation == later.Generation && earlier.Attempt == later.Attempt && earlier.Claim < later.Claim
}

// sharedLog returns the index among the logs of a task, in order, of the one that a dispatch shares, or -1. The dispatch is of
// the newest generation, unless the task was kept from an earlier one.
func (f *Follower) sharedLog(t *tail, found []logs.Attempt, own logs.Attempt) int {
	isKept := v1.IsTaskTerminal(t.info.GetState()) && t.printer != nil
	if isKept && t.printer.Recorded {
		own.Generation, isKept = t.printer.Generation, false
	}
	for k, a := range slices.Backward(found) {
		if a.Generation != own.Generation && isKept {
			own.Generation = a.Generation
		}
		if isShared(t.info.GetType(), a, own) {
			return k
		}
	}
	return -1
}

// awaitNext notes that a dispatch shares the log that was put into the queue last, or prints into its own after the end of
// that one.
func (f *Follower) awaitNext(t *tail, own logs.Attempt) {
	switch {
	case f.req.Attempt != nil && own.Attempt != f.req.GetAttempt():
	case len(t.queue) > 0 && (t.unsure == nil || *t.unsure != *t.known || t.next > 0):
		t.then = &own
	default:
		t.unsure = &own
		t.push(own, f.resume)
	}
}
