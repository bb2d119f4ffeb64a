package taskrunner

import (
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// An order that reaches the node after Temporal has given it up, and perhaps another one since, changes nothing.
func TestLateDrainIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := &Service{Client: b.server, Node: b.Node}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(s)
	b.server.say(givenUp)
	if _, err := env.ExecuteActivity(s.Drain, &historyv1.NodeDrain{Reason: "old disks"}); err == nil {
		t.Error("a late drain is carried out")
	}
	want(t, b.start(t.Context(), request("a")).answer(), "completed", "")
	b.BeginDrain(time.Time{}, "new disks")
	if _, err := env.ExecuteActivity(s.Undrain); err == nil {
		t.Error("a late undrain is carried out")
	}
	want(t, b.start(t.Context(), request("b")).answer(), "moved", "draining")
	b.server.say(nil)
	if _, err := env.ExecuteActivity(s.Undrain); err != nil {
		t.Error(err)
	}
	want(t, b.start(t.Context(), request("c")).answer(), "completed", "")
}
