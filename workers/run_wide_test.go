package workers

import (
	"testing"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows"
)

// Many instances in batches take few events of history, and a look at the run costs
// what has changed. The run carries all of them through itself here.
func TestManyInstances(t *testing.T) {
	t.Parallel()
	const count = 5000
	c := own(t, ControlConfig{limits: workflows.Limits{Instances: count}}).crew(t, script{"z": {{Block: true}}})
	c.start("n", func(cfg *NodeConfig) { cfg.MaxParallel = 4 })
	h := c.submit(c.input(`{name: many, tasks: {
		each: {type: shell, spec: {command: x}, parallel: 5000, batch: 50},
		z: {type: shell, spec: {command: x}, dependsOn: [each]}}}`))
	c.running("z") // to ask for thousands of instances all the time would slow down what is waited for
	res := h.status(&v1.StatusRequest{})
	each := res.GetRun().GetTasks()["each"]
	if each.GetCount() != count || each.GetCounts()["completed"] != count || len(each.GetInstances()) > 1000 {
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
	if n := len(h.history("")); n > 1500 {
		t.Errorf("%d events", n)
	} else {
		t.Logf("%d events", n)
	}
}
