package run_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
)

// TestManyInstancesInBatchesProduceFewEvents checks that many instances in batches, which the run itself carries, produce
// few history events, and that reading the run costs only what has changed.
func TestManyInstancesInBatchesProduceFewEvents(t *testing.T) {
	t.Parallel()
	const count = 480
	c := workertest.Shared(t).Nodes(t, workertest.Script{"z": {{Block: true}}})
	c.Start("n", func(cfg *workers.NodeConfig) { cfg.MaxParallel = 4 })
	h := c.Submit(c.Input(fmt.Sprintf(`{name: many, tasks: {
		each: {type: shell, spec: {command: x}, parallel: %d, batch: 50},
		z: {type: shell, spec: {command: x}, dependsOn: [each]}}}`, count)))
	c.AwaitRunning("z")
	res := h.Status(&historyv1.StatusRequest{})
	for res.GetMore() {
		res = h.Status(&historyv1.StatusRequest{Since: res.GetRevision()})
	}
	if res := h.Status(&historyv1.StatusRequest{Since: res.GetRevision() - 1}); proto.Size(res) > 2000 {
		t.Errorf("news of %d bytes", proto.Size(res))
	}
	c.Fake.Release("z")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"each": "completed"})
	if shown, ran, events := len(run.Tasks["each"].GetInstances()), c.Calls()["each"], len(h.History("")); shown != count || ran != count || events > 300 {
		t.Errorf("%d instances at the end, %d executions, %d events", shown, ran, events)
	}
}
