package schedules_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"switchyard/activities/library"
	"switchyard/activities/schedules"
	"switchyard/dev/temporaltest"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

var temporalClient client.Client

func TestMain(m *testing.M) {
	os.Exit(serve(m))
}

func serve(m *testing.M) int {
	server, err := temporaltest.Start(temporaltest.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = server.Stop() }()
	temporalClient, err = client.Dial(client.Options{HostPort: server.Address(), Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer temporalClient.Close()
	w := worker.New(temporalClient, names.ControlQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(openRun, workflow.RegisterOptions{Name: names.RunWorkflow})
	if err := w.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer w.Stop()
	return m.Run()
}

// endSignal is the signal that ends an openRun.
const endSignal = "end"

// openRun stands in for the workflow Run. It stays open until it is cancelled or gets endSignal, or returns
// immediately if its input has brief set.
func openRun(ctx workflow.Context, in *historyv1.RunInput) error {
	in, err := definition.Unpack(in)
	if err != nil {
		return err
	}
	if in.GetInput().GetFields()["brief"].GetBoolValue() {
		return nil
	}
	s := workflow.NewSelector(ctx)
	s.AddReceive(workflow.GetSignalChannel(ctx, endSignal), func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, nil) })
	s.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	s.Select(ctx)
	return ctx.Err()
}

func all() *schedules.Schedules { return schedules.New(temporalClient, client.DefaultNamespace) }

// store stores a workflow with a schedule and deletes it when the test ends.
func store(t *testing.T, text string) {
	t.Helper()
	def, err := definition.Parse("stored.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l := library.New(temporalClient, client.DefaultNamespace)
	if _, err := l.Put(t.Context(), def, library.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Delete(context.Background(), def.GetName(), ""); err != nil {
			t.Error(err)
		}
	})
}

// get returns a schedule, or fails the test.
func get(t *testing.T, name string) *v1.Schedule {
	t.Helper()
	s, err := all().Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
