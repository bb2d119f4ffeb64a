package taskrunner

import (
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/testsuite"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// givenUp answers the heartbeats of activities that Temporal has given up on, other than those of attempts.
func givenUp(_ int, p *historyv1.ExecuteProgress) error {
	if p == nil {
		return serviceerror.NewNotFound("no such activity")
	}
	return nil
}

// A request that reaches the node after Temporal has given it up changes nothing.
func TestLateRequestIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, blocking())
	e := b.start(t.Context(), request("a"))
	b.runs("a")
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(b.Steer)
	pause := func() error {
		_, err := env.ExecuteActivity(b.Steer, &historyv1.SteerRequest{RunId: "r-1", Task: "a", Claim: 1, Action: actionPause})
		return err
	}
	id := b.fake.Calls()[0].Attempt.ID
	b.server.say(givenUp)
	if err := pause(); err == nil || b.fake.Paused(id) {
		t.Errorf("a late request: %v, paused %t", err, b.fake.Paused(id))
	}
	b.server.say(nil)
	if err := pause(); err != nil || !b.fake.Paused(id) {
		t.Errorf("a request in time: %v, paused %t", err, b.fake.Paused(id))
	}
	if _, err := b.Steer(t.Context(), &historyv1.SteerRequest{RunId: "r-1", Task: "a", Claim: 1, Action: actionResume}); err != nil {
		t.Error(err)
	}
	b.fake.Release("a")
	want(t, e.answer(), "completed", "")
}
