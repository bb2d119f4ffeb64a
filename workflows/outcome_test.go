package workflows

import (
	"fmt"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"switchyard/proto/prototest"

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
		{"moved", "not_started", "suspect"},
		{"moved", "something", "moved"},
	} {
		if got := outcomeOf(test.state, test.reason); got != test.want {
			t.Errorf("%s %s: %q, want %q", test.state, test.reason, got, test.want)
		}
	}
}

// The node of an attempt that was lost with its lease or its heartbeats is asked for what it has recorded.
func TestCutOffAttempts(t *testing.T) {
	t.Parallel()
	beat := func(kind enumspb.TimeoutType, spawned bool) error {
		return temporal.NewTimeoutError(kind, nil, v1.ExecuteProgress{Spawned: spawned})
	}
	for name, test := range map[string]struct {
		state, reason string
		err           error
		want          bool
	}{
		"completed":           {state: "completed"},
		"handed back":         {state: "moved", reason: "no_room"},
		"lease lost":          {state: "moved", reason: "lease_lost", want: true},
		"silent while it ran": {err: beat(enumspb.TIMEOUT_TYPE_HEARTBEAT, true), want: true},
		"silent before":       {err: beat(enumspb.TIMEOUT_TYPE_HEARTBEAT, false)},
		"not picked up":       {err: beat(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, true)},
		"cancelled":           {err: temporal.NewCanceledError()},
	} {
		if got := isCutOff(&v1.ExecuteResponse{State: test.state, Reason: test.reason}, test.err); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
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
		if end(0, step.outcome, step.outcome == "system", v1.AttemptMoved); b.refusals(0) != step.refusals || b.avoid(0) != step.avoid {
			t.Errorf("after %q: %d refusals, avoid %q; want %d, %q", step.outcome, b.refusals(0), b.avoid(0), step.refusals, step.avoid)
		}
	}
	end(0, v1.OutcomeSystem, true, v1.TaskLost)
	end(3, v1.OutcomeSystem, true, v1.TaskLost)
	if got := b.unheard(0); len(got) != 2 || got[0] != 0 || got[1] != 3 {
		t.Errorf("nobody heard of %v", got)
	}
	before := b.taskMessage(0)
	kept := len(before.GetAttempts())
	for n := range int32(250) {
		end(4+n, v1.OutcomeDone, false, v1.TaskFailed)
	}
	attempts := b.taskMessage(0).GetAttempts()
	if len(attempts) != maxAttempts || attempts[0].GetAttempt() != 154 || attempts[maxAttempts-1].GetAttempt() != 253 || len(before.GetAttempts()) != kept {
		t.Errorf("%d attempts, from %d on", len(attempts), attempts[0].GetAttempt())
	}
}

// An attempt says which GPUs, NUMA node and container it had, also when another execution of the run has taken it over
// from the one that began it. What another node has recorded had others.
func TestAttemptSaysWhatItHadOfItsNode(t *testing.T) {
	t.Parallel()
	numa := int32(1)
	d := ending("a", v1.TaskFailed, &v1.ExecuteResponse{Node: "a", Result: &v1.TaskResult{Container: "3f2a9c0d1e4b"}})
	d.gpus, d.numaNode = []int32{0, 3}, &numa
	for node, want := range map[string]string{"a": "[0 3] 1 3f2a9c0d1e4b", "b": "[] 0 3f2a9c0d1e4b"} {
		d.ended.Node = node
		a := d.attempt(time.Unix(0, 0))
		if got := fmt.Sprint(a.GetGpus(), a.GetNumaNode(), " ", a.GetContainer()); got != want || (a.NumaNode == nil) != (node == "b") {
			t.Errorf("on node %s it had %s", node, got)
		}
	}
	left := &v1.HandedOver{}
	prototest.Fill(left)
	b := newTestBoard(t, 1)
	left.Lead, left.Members = b.name(0), []string{b.name(0)}
	if again := handedOver(restoredAttempt(left, 0, []int{0}), b.name); !proto.Equal(left, again) {
		t.Errorf("%v\nis handed over as\n%v", left, again)
	}
}
