package workers_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"switchyard/activities/executor/fake"
	"switchyard/workers"
	"switchyard/workers/workertest"
)

// Temporal tells a worker how many tasks wait in its sticky queue. The number may be out of date when the worker reads it.
func TestRunsStartWhileStickyQueueSeemsToHaveBacklog(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{})
	sdk, err := client.Dial(client.Options{
		HostPort: y.Server.Address(), DataConverter: workers.NewDataConverter(),
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(claimBacklog)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sdk.Close)
	conn := *y.Conn
	conn.Client = sdk
	y.Control.Stop()
	cfg := y.Config
	cfg.Client = &conn
	if y.Control, err = workers.StartControl(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	script := workertest.Script{}
	for i := range 8 {
		script["task-"+strconv.Itoa(i)] = []fake.Step{{Block: true}}
	}
	c := y.Nodes(t, script)
	c.Start("n")
	began := time.Now()
	for task := range script {
		c.Submit(c.Input(`{name: waits, tasks: {first: {type: shell, spec: {command: x}}, ` + task + `: {type: shell, spec: {command: x}, dependsOn: [first]}}}`))
		c.AwaitRunning(task)
	}
	// A poll of a queue without tasks lasts half a minute here.
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("eight runs took %s to start", took)
	}
}

// claimBacklog makes each answer of a sticky queue say that another task waits there.
func claimBacklog(ctx context.Context, method string, req, res any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := call(ctx, method, req, res, conn, opts...)
	poll, ok := req.(*workflowservice.PollWorkflowTaskQueueRequest)
	if ok && err == nil && poll.GetTaskQueue().GetKind() == enumspb.TASK_QUEUE_KIND_STICKY {
		res.(*workflowservice.PollWorkflowTaskQueueResponse).BacklogCountHint = 1
	}
	return err
}
