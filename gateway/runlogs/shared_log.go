package runlogs

import (
	"slices"

	"switchyard/activities/logs"
	v1 "switchyard/proto/switchyard/v1"
)

// All dispatches of an attempt that runs outside of the nodes share the log of the first dispatch that printed something.
// However, a task that is put back starts again with attempt 0 in a log of its own, and the run does not report which of the
// two cases applies. Followers therefore read a shared log to its end, and then the log of the newest dispatch, if it exists.

// isShared reports whether a later dispatch may continue the log of an earlier one.
func isShared(taskType string, earlier, later logs.Attempt) bool {
	return v1.IsRemote(taskType) && earlier.Generation == later.Generation && earlier.Attempt == later.Attempt && earlier.Claim < later.Claim
}

// sharedLog returns the index in found, which is sorted, of the log that a dispatch shares, or -1. The dispatch belongs to the
// newest generation, unless the task was kept from an earlier one.
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

// awaitNext records a dispatch that either shares the last log in the queue, or prints into its own log after the end of that
// one.
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
