package run_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
)

// TestManyInstancesInBatchesProduceFewEvents checks that many instances in batches produce few history events, and that
// reading the run costs only what has changed. The run itself carries all of them.
func TestManyInstancesInBatchesProduceFewEvents(t *testing.T) { manyInstances(t, 600, 300) }

func TestLongManyInstancesInBatchesProduceFewEvents(t *testing.T) {
	testneeds.Long(t)
	manyInstances(t, 5000, 1500)
}

// manyInstances runs the given number of instances with a limit on history events.
func manyInstances(t *testing.T, count, events int) {
	t.Parallel()
	c := workertest.SharedWithin(t, limits.Run{Instances: count}).Nodes(t, workertest.Script{"z": {{Block: true}}})
	c.Start("n", func(cfg *workers.NodeConfig) { cfg.MaxParallel = 4 })
	h := c.Submit(c.Input(fmt.Sprintf(`{name: many, tasks: {
		each: {type: shell, spec: {command: x}, parallel: %d, batch: 50},
		z: {type: shell, spec: {command: x}, dependsOn: [each]}}}`, count)))
	c.AwaitRunning("z") // polling thousands of instances all the time would slow the run down
	res := h.Status(&historyv1.StatusRequest{})
	each := res.GetRun().GetTasks()["each"]
	if int(each.GetCount()) != count || int(each.GetCounts()["completed"]) != count || len(each.GetInstances()) > 1000 {
		t.Errorf("%d instances, %v, %d of them shown", each.GetCount(), each.GetCounts(), len(each.GetInstances()))
	}
	for res.GetMore() {
		res = h.Status(&historyv1.StatusRequest{Since: res.GetRevision()})
	}
	if res := h.Status(&historyv1.StatusRequest{Since: res.GetRevision() - 1}); proto.Size(res) > 2000 {
		t.Errorf("news of %d bytes", proto.Size(res))
	}
	c.Fake.Release("z")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"each": "completed"})
	if n := len(run.Tasks["each"].GetInstances()); n != count || c.Calls()["each"] != count {
		t.Errorf("%d instances at the end, %d executions", n, c.Calls()["each"])
	}
	n := len(h.History(""))
	t.Logf("%d events", n)
	if n > events {
		t.Errorf("the history holds more than %d events", events)
	}
}
