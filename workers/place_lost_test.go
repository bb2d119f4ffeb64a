package workers_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	commandpb "go.temporal.io/api/command/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
)

// TestLostPlacementIsToldAgain checks that the placement queue repeats replies that a failed workflow task lost, so
// that the run does not wait for ever.
func TestLostPlacementIsToldAgain(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{})
	c := y.Nodes(t, workertest.Script{"first": {{Block: true}}})
	c.Start("n", func(cfg *workers.NodeConfig) { cfg.MaxParallel = 1 })
	y.Control.Stop()
	var lost atomic.Bool
	cfg := y.Config
	cfg.Client = lossy(t, y, &lost)
	control, err := workers.StartControl(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	y.Control = control
	h := c.Submit(c.Input(`{name: lost, tasks: {first: {type: shell, priority: 9, spec: {command: x}}, second: {type: shell, spec: {command: x}}}}`))
	c.AwaitRunning("first")
	c.Fake.Release("first") // its end frees a place, and the queue gives it to second
	workertest.CheckRun(t, h.Wait(), "completed", nil)
	if !lost.Load() {
		t.Error("nothing was lost")
	}
	if calls := c.Calls(); calls["first"] != 1 || calls["second"] != 1 {
		t.Errorf("calls: %v", calls)
	}
}

// lossy returns a client that fails the first workflow task in which the task "second" gets a node.
func lossy(t *testing.T, y *workertest.Cluster, lost *atomic.Bool) *workers.Connection {
	t.Helper()
	intercept := func(ctx context.Context, method string, req, res any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		done, ok := req.(*workflowservice.RespondWorkflowTaskCompletedRequest)
		if !ok || !places(done.GetCommands(), "second") || !lost.CompareAndSwap(false, true) {
			return invoke(ctx, method, req, res, cc, opts...)
		}
		failed := &workflowservice.RespondWorkflowTaskFailedRequest{
			TaskToken: done.GetTaskToken(), Namespace: done.GetNamespace(), Cause: enumspb.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
		}
		if err := invoke(ctx, workflowservice.WorkflowService_RespondWorkflowTaskFailed_FullMethodName, failed, &workflowservice.RespondWorkflowTaskFailedResponse{}, cc, opts...); err != nil {
			return err
		}
		return status.Error(codes.NotFound, "the workflow task has failed")
	}
	cl, err := client.DialContext(t.Context(), client.Options{
		HostPort: y.Server.Address(), Logger: log.NewStructuredLogger(workers.Quiet(y.Logger)), DataConverter: workers.NewDataConverter(),
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(intercept)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	conn := *y.Conn
	conn.Client = cl
	return &conn
}

// places reports whether the commands contain a reply of the placement queue that gives a task a node.
func places(commands []*commandpb.Command, task string) bool {
	for _, c := range commands {
		for _, p := range c.GetRecordMarkerCommandAttributes().GetDetails()["result"].GetPayloads() {
			var res historyv1.PlaceResponse
			if protojson.Unmarshal(p.GetData(), &res) != nil {
				continue // belongs to another activity
			}
			if slices.ContainsFunc(res.GetAssigned(), func(a *historyv1.Assignment) bool { return a.GetTask() == task }) {
				return true
			}
		}
	}
	return false
}
