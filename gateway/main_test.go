package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"switchyard/dev/temporaltest"
	"switchyard/dev/testneeds"
	"switchyard/workflows/environment"
	"switchyard/workflows/names"
)

// quietLogger keeps the output of the Temporal SDK out of the tests.
var quietLogger = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

var (
	// temporalClient is connected to the Temporal server of the tests.
	temporalClient client.Client
	// controlWorker runs scriptedRun and scriptedExplain.
	controlWorker worker.Worker
)

func TestMain(m *testing.M) {
	// Most tests wait for Temporal, so several can run per core.
	testneeds.Parallel(8)
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	server, err := temporaltest.Start(temporaltest.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	temporalClient, err = client.Dial(client.Options{HostPort: server.Address(), Logger: quietLogger})
	if err != nil {
		panic(err)
	}
	controlWorker = startWorker()
	code := m.Run()
	controlWorker.Stop()
	temporalClient.Close()
	if err := errors.Join(server.Stop(), testneeds.FindLeaks()); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

func startWorker() worker.Worker {
	w := worker.New(temporalClient, names.ControlQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(scriptedRun, workflow.RegisterOptions{Name: names.RunWorkflow})
	w.RegisterWorkflowWithOptions(scriptedFanOut, workflow.RegisterOptions{Name: names.FanOutWorkflow})
	w.RegisterWorkflowWithOptions(scriptedExplain, workflow.RegisterOptions{Name: names.ExplainWorkflow})
	w.RegisterWorkflowWithOptions(environment.Environment, workflow.RegisterOptions{Name: names.EnvironmentWorkflow})
	w.RegisterActivityWithOptions(keepEnvironment, activity.RegisterOptions{Name: names.KeepActivity})
	w.RegisterActivityWithOptions(discardEnvironment, activity.RegisterOptions{Name: names.DiscardActivity})
	if err := w.Start(); err != nil {
		panic(err)
	}
	return w
}
