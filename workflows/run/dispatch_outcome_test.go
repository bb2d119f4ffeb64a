package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/registry"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
)

func TestDispatchEndDecidesWhatFollows(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		moves      []move
		retries    int
		state      string // state of the task
		attempts   string
		dispatches string // attempt, claim, and attempts that were never reported
		events     string
	}{
		"lost on a live node": {
			moves: []move{die(true)}, retries: 1, state: "completed",
			attempts: "0.1 moved lease_lost, 0.2 completed ", dispatches: "0.1[] 0.2[0]",
			events: "submitted queued assigned silent started reassigned assigned started completed",
		},
		"lost with its node, not repeated": {
			moves: []move{leave}, retries: 0, state: "lost node_lost",
			attempts: "0.1 lost node_lost", dispatches: "0.1[]",
			events: "submitted queued assigned silent started failed",
		},
		"handed back without a lease again and again": {
			moves: []move{loseLease, loseLease, loseLease, loseLease}, retries: 1, state: "completed",
			attempts: "0.1 moved lease_lost, 0.2 moved lease_lost, 0.3 moved lease_lost, 0.4 lost lease_lost, 1.5 completed ", dispatches: "0.1[] 0.2[0] 0.3[0] 0.4[0] 1.5[0]",
			events: "submitted queued assigned started reassigned assigned started reassigned assigned started reassigned assigned " +
				"started failed retried queued assigned started completed",
		},
		"broken node": {
			moves: []move{breakDown}, retries: 1, state: "completed",
			attempts: "0.1 failed system, 1.2 completed ", dispatches: "0.1[] 1.2[]",
			events: "submitted queued assigned failed retried queued assigned started completed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := workertest.Shared(t).Nodes(t, nil)
			p := startPuppet(c, "n", test.moves...)
			in := c.Input(fmt.Sprintf(`{name: outcome, tasks: {x: {type: shell, spec: {command: x}, retry: {maxRetries: %d, backoffMs: 1}}}}`, test.retries))
			if strings.HasPrefix(name, "lost") {
				in.Options.HeartbeatTimeout = durationpb.New(4 * time.Second) // only the dispatches that die are silent
			}
			h := c.Submit(in)
			run := h.Wait()
			state := map[bool]string{true: "completed", false: "failed"}[test.state == "completed"]
			workertest.CheckRun(t, run, state, map[string]string{"x": test.state})
			x := run.Tasks["x"]
			var attempts []string
			for _, a := range x.GetAttempts() {
				attempts = append(attempts, fmt.Sprintf("%d.%d %s %s", a.GetAttempt(), a.GetClaim(), a.GetState(), a.GetReason()))
				if a.GetNode() != p.name || a.GetCompletedAt() == nil {
					t.Errorf("attempt %v", a)
				}
			}
			if got := strings.Join(attempts, ", "); got != test.attempts || x.GetSuspicions() != 0 {
				t.Errorf("attempts are %q, %d suspicions; want %q, none", got, x.GetSuspicions(), test.attempts)
			}
			if got := p.dispatches(); got != test.dispatches {
				t.Errorf("dispatches are %s, want %s", got, test.dispatches)
			}
			if got := lifecycleOf(h, "x", 1); got != test.events {
				t.Errorf("events are %s, want %s", got, test.events)
			}
			if x.GetState() == "completed" {
				// The times must come from the node's clock.
				if !slices.Equal([]int64{x.GetAssignedAt().GetSeconds(), x.GetStartedAt().GetSeconds(), x.GetCompletedAt().GetSeconds()},
					[]int64{at(1).GetSeconds(), at(2).GetSeconds(), at(3).GetSeconds()}) {
					t.Errorf("times of %v", x)
				}
			}
			if r := p.requests[0]; r.GetNode() != p.name || r.GetIncarnation() == "" {
				t.Errorf("the first request is %v", r)
			}
			for _, e := range storedEvents(h, 0) {
				if e.GetEvent() == "assigned" && (e.GetDetail() == "" || e.GetNode() != p.name || e.GetClaim() == 0 || e.GetData().GetFields()["score"] == nil) {
					t.Errorf("event %v", e)
				}
			}
			if test.state == "lost node_lost" && x.GetStartedAt().GetSeconds() != at(0).GetSeconds() {
				t.Errorf("the last beat told when it started: %v", x)
			}
			unknown := strings.HasSuffix(x.GetError(), "; it may have done its work, but it recorded no result, and it is not retried")
			if isLost := strings.HasPrefix(test.state, "lost "); unknown != isLost {
				t.Errorf("the error is %q", x.GetError())
			}
			workertest.Replay(t, "outcome-"+strings.NewReplacer(" ", "-", ",", "").Replace(name), limits.Run{}, h.History(""))
		})
	}
}

// TestDispatchThatIsNotPickedUpIsSuspicion checks that a dispatch that a live node does not pick up goes elsewhere, and
// counts as a suspicion of the node.
func TestDispatchThatIsNotPickedUpIsSuspicion(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	n := c.Start("n")
	n.StopLastLane() // the node heartbeats but picks up nothing
	in := c.Input(`{name: suspicion, tasks: {a: {type: shell, spec: {command: x}}}}`)
	// The pick-up time-out is at least the other one. The other node has as much time to pick it up.
	in.Options = &v1.RunOptions{HeartbeatTimeout: durationpb.New(5 * time.Second), PickupTimeout: durationpb.New(5 * time.Second)}
	h := c.Submit(in)
	h.AwaitTask("a", func(a *v1.Task) bool { return a.GetSuspicions() > 0 })
	reg := registry.New(c.Conn)
	workertest.Eventually(t, "the node is suspected", func() bool {
		node, err := reg.Get(t.Context(), c.Name("n"))
		return err == nil && node.GetSuspicions() > 0
	})
	c.Start("m")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"a": "completed"})
	if a := run.GetTasks()["a"]; a.GetAttempt() != 0 || a.GetNode() != c.Name("m") {
		t.Errorf("it ended as %v", a)
	}
}
