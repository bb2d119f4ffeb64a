package gateway

import (
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"switchyard/workers/workertest"
	"switchyard/workflows/environment"
	"switchyard/workflows/names"
)

var (
	// temporalClient is connected to the Temporal server of the tests.
	temporalClient client.Client
	// controlWorker runs scriptedRun and scriptedExplain.
	controlWorker worker.Worker
)

func TestMain(m *testing.M) {
	workertest.MainBare(m, func(y *workertest.Cluster) (stop func()) {
		temporalClient = y.Conn.Client
		controlWorker = startWorker()
		return func() { controlWorker.Stop() } // a test replaces the worker
	})
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
