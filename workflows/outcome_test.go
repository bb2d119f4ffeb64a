package workflows

import (
	"testing"
	"time"

	"switchyard/workflows/dag"

	v1 "switchyard/proto/switchyard/v1"
)

// What a dispatch says of its node is what the answer says, or nothing.
func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ state, reason, want string }{
		{"completed", "", "done"},
		{"failed", "exit_code", "done"},
		{"killed_oom", "oom", "done"},
		{"cancelled", "cancelled", ""},
		{"moved", "no_room", "refused"},
		{"moved", "draining", "refused"},
		{"moved", "incarnation", "refused"},
		{"moved", "no_executor", "refused"},
		{"moved", "not_started", "system"},
		{"moved", "something", "moved"},
	} {
		if got := outcomeOf(test.state, test.reason); got != test.want {
			t.Errorf("%s %s: %q, want %q", test.state, test.reason, got, test.want)
		}
	}
}

// Refusals are counted as long as they come in a row, an attempt of which nobody
// heard is noted once, and the newest attempts are shown.
func TestWhatDispatchesLeaveOnTheBoard(t *testing.T) {
	t.Parallel()
	b := newTestBoard(t, 1)
	end := func(number int32, outcome string, unheard bool, state string) {
		d := ending("a", state, &v1.ExecuteResponse{})
		d.number, d.outcome, d.unheard = number, outcome, unheard
		b.attemptEnded(0, d, time.Unix(int64(number), 0))
	}
	for _, step := range []struct {
		outcome  string
		refusals int32
		avoid    string
	}{{"refused", 1, "a"}, {"refused", 2, "a"}, {"system", 0, "a"}, {"refused", 1, "a"}, {"done", 0, ""}, {"", 0, ""}, {"moved", 0, "a"}} {
		if end(0, step.outcome, step.outcome == "system", dag.StateMoved); b.refusals(0) != step.refusals || b.avoid(0) != step.avoid {
			t.Errorf("after %q: %d refusals, avoid %q; want %d, %q", step.outcome, b.refusals(0), b.avoid(0), step.refusals, step.avoid)
		}
	}
	end(0, outcomeSystem, true, dag.StateLost)
	end(3, outcomeSystem, true, dag.StateLost)
	if got := b.unheard(0); len(got) != 2 || got[0] != 0 || got[1] != 3 {
		t.Errorf("nobody heard of %v", got)
	}
	before := b.taskMessage(0)
	kept := len(before.GetAttempts())
	for n := range int32(250) {
		end(4+n, outcomeDone, false, dag.StateFailed)
	}
	attempts := b.taskMessage(0).GetAttempts()
	if len(attempts) != maxAttempts || attempts[0].GetAttempt() != 154 || attempts[maxAttempts-1].GetAttempt() != 253 || len(before.GetAttempts()) != kept {
		t.Errorf("%d attempts, from %d on", len(attempts), attempts[0].GetAttempt())
	}
}
