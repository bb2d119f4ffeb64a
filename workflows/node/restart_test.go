package node

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// restartingNode is the entry of a node. Its worker i1 on machine m1 reports after a minute that it restarts for at most
// four minutes.
type restartingNode struct {
	t   *testing.T
	env *testsuite.TestWorkflowEnvironment
	*entry
}

func newRestartingNode(t *testing.T) *restartingNode {
	t.Helper()
	n := &restartingNode{t: t, env: (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()}
	n.env.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		n.entry = &entry{Registrar: Registrar{ForgetAfter: time.Hour, HistoryEvents: 2000}, name: "n1", record: &historyv1.NodeRecord{Name: "n1", State: v1.NodeOffline}}
		if err := n.listen(ctx); err != nil {
			return err
		}
		return n.keep(ctx)
	}, workflow.RegisterOptions{Name: names.NodeWorkflow})
	n.env.RegisterActivityWithOptions(func(context.Context, *historyv1.NodeInput) error {
		return activity.ErrResultPending // the clock of the environment stands still while an activity runs
	}, activity.RegisterOptions{Name: names.HeartbeatActivity})
	n.update(0, "", names.RegisterUpdate, &historyv1.NodeRegistration{Name: "n1", Incarnation: "i1", Machine: "m1"})
	n.update(time.Minute, "", names.RestartUpdate, &historyv1.NodeRestart{Incarnation: "i1", Wait: durationpb.New(4 * time.Minute), Kept: 2, First: durationpb.New(12 * time.Second)})
	n.env.RegisterDelayedCallback(func() { n.env.CancelWorkflow() }, 30*time.Minute)
	return n
}

// update sends an update after a while. refusal is a part of the error that it must meet, or "" if it must succeed.
func (n *restartingNode) update(after time.Duration, refusal, name string, args ...any) {
	check := func(err error) {
		if refusal == "" && err != nil || refusal != "" && (err == nil || !strings.Contains(err.Error(), refusal)) {
			n.t.Errorf("%s after %s: %v; want %q", name, after, err, refusal)
		}
	}
	n.env.RegisterDelayedCallback(func() {
		n.env.UpdateWorkflow(name, "", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: check, OnComplete: func(_ any, err error) { check(err) },
		}, args...)
	}, after)
}

// expects checks the state of the node after a while.
func (n *restartingNode) expects(after time.Duration, state string, isAwaited bool) {
	n.env.RegisterDelayedCallback(func() {
		r := n.record
		isKept := r.GetKept() == 2 && strings.Contains(r.GetReason(), "2 tasks run on without the worker, the first until ")
		if r.GetState() != state || (r.GetRestartingUntil() != nil) != isAwaited || isKept != isAwaited {
			n.t.Errorf("after %s: %v", after, r)
		}
	}, after)
}

func (n *restartingNode) run() { n.env.ExecuteWorkflow(names.NodeWorkflow) }

// TestRestartingNodeIsContinuedByTheNextWorker checks that a worker on the same machine takes a restarting node over at
// once, while one on another machine and the removal of the node are refused.
func TestRestartingNodeIsContinuedByTheNextWorker(t *testing.T) {
	t.Parallel()
	n := newRestartingNode(t)
	n.expects(30*time.Second, v1.NodeActive, false)
	n.expects(61*time.Second, v1.NodeRestarting, true)
	n.update(2*time.Minute, "restarts on machine m1, where its tasks run until ", names.RegisterUpdate, &historyv1.NodeRegistration{Name: "n1", Incarnation: "i2", Machine: "m2"})
	n.update(2*time.Minute, "only a node that is offline can be removed", names.RemoveUpdate)
	n.update(2*time.Minute, `incarnation "i0" is not registered`, names.RestartUpdate, &historyv1.NodeRestart{Incarnation: "i0", Wait: durationpb.New(time.Minute)})
	n.expects(3*time.Minute, v1.NodeRestarting, true)
	n.update(4*time.Minute, "", names.RegisterUpdate, &historyv1.NodeRegistration{Name: "n1", Incarnation: "i2", Machine: "m1"})
	n.expects(4*time.Minute+time.Second, v1.NodeActive, false)
	n.expects(10*time.Minute, v1.NodeActive, false)
	n.run()
}

// TestRestartingNodeIsOfflineIfNoWorkerComes checks that a node becomes offline when the leases of its attempts are over,
// and that any worker may then have its name.
func TestRestartingNodeIsOfflineIfNoWorkerComes(t *testing.T) {
	t.Parallel()
	n := newRestartingNode(t)
	n.expects(4*time.Minute, v1.NodeRestarting, true)
	n.expects(5*time.Minute+2*time.Second, v1.NodeOffline, false)
	n.update(6*time.Minute, "is not registered", names.RestartUpdate, &historyv1.NodeRestart{Incarnation: "i1", Wait: durationpb.New(time.Minute)})
	n.update(7*time.Minute, "", names.RegisterUpdate, &historyv1.NodeRegistration{Name: "n1", Incarnation: "i2", Machine: "m2"})
	n.expects(8*time.Minute, v1.NodeActive, false)
	n.run()
}

// TestDrainOfARestartingNodeAppliesToItsNextWorker checks that a drain neither hides that a node restarts nor is lost.
func TestDrainOfARestartingNodeAppliesToItsNextWorker(t *testing.T) {
	t.Parallel()
	n := newRestartingNode(t)
	n.env.RegisterActivityWithOptions(func(context.Context, *historyv1.NodeDrain) error { return nil }, activity.RegisterOptions{Name: names.DrainActivity})
	n.update(2*time.Minute, "", names.DrainUpdate, &historyv1.NodeDrain{Reason: "repair"})
	n.expects(3*time.Minute, v1.NodeRestarting, true)
	n.update(4*time.Minute, "", names.RegisterUpdate, &historyv1.NodeRegistration{Name: "n1", Incarnation: "i2", Machine: "m1"})
	n.expects(4*time.Minute+time.Second, v1.NodeDraining, false)
	n.run()
}
