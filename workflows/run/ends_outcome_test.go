package run

import (
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"switchyard/proto/prototest"
	v1 "switchyard/proto/switchyard/v1"
)

// outcomeOf derives the outcome for the node from the answer.
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

// After an attempt has lost its lease or its heartbeats, its node is asked for recorded results.
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

// The next execution restores exactly the attempt that this one hands over.
func TestDetachedAttemptIsRestored(t *testing.T) {
	t.Parallel()
	left := &v1.DetachedAttempt{}
	prototest.Fill(left)
	name := func(int) string { return "t0" }
	left.Lead, left.Members = name(0), []string{name(0)}
	if again := handedOver(restoredAttempt(left, 0, []int{0}), name); !proto.Equal(left, again) {
		t.Errorf("%v\nis handed over as\n%v", left, again)
	}
}
