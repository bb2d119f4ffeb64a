package workers

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
)

// TestManyInstances checks that many instances in batches produce few history events, and that reading the run costs
// only what has changed. The run itself carries all of them.
func TestManyInstances(t *testing.T) { manyInstances(t, 1500, 600) }

func TestLongManyInstances(t *testing.T) {
	testneeds.Long(t)
	manyInstances(t, 5000, 1500)
}

// manyInstances runs the given number of instances with a limit on history events.
func manyInstances(t *testing.T, count, events int) {
	t.Parallel()
	c := own(t, ControlConfig{limits: limits.Run{Instances: count}}).workers(t, script{"z": {{Block: true}}})
	c.start("n", func(cfg *NodeConfig) { cfg.MaxParallel = 4 })
	h := c.submit(c.input(fmt.Sprintf(`{name: many, tasks: {
		each: {type: shell, spec: {command: x}, parallel: %d, batch: 50},
		z: {type: shell, spec: {command: x}, dependsOn: [each]}}}`, count)))
	c.running("z") // polling thousands of instances all the time would slow the run down
	res := h.status(&v1.StatusRequest{})
	each := res.GetRun().GetTasks()["each"]
	if int(each.GetCount()) != count || int(each.GetCounts()["completed"]) != count || len(each.GetInstances()) > 1000 {
		t.Errorf("%d instances, %v, %d of them shown", each.GetCount(), each.GetCounts(), len(each.GetInstances()))
	}
	for res.GetMore() {
		res = h.status(&v1.StatusRequest{Since: res.GetRevision()})
	}
	if res := h.status(&v1.StatusRequest{Since: res.GetRevision() - 1}); proto.Size(res) > 2000 {
		t.Errorf("news of %d bytes", proto.Size(res))
	}
	c.fake.Release("z")
	run := h.wait()
	want(t, run, "completed", map[string]string{"each": "completed"})
	if n := len(run.Tasks["each"].GetInstances()); n != count || c.calls()["each"] != count {
		t.Errorf("%d instances at the end, %d executions", n, c.calls()["each"])
	}
	n := len(h.history(""))
	t.Logf("%d events", n)
	if n > events {
		t.Errorf("the history holds more than %d events", events)
	}
}
