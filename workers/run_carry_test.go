package workers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// TestSteeringAcrossContinueAsNew checks that user commands to a run, and the remaining time of its tasks, survive
// continue-as-new.
func TestSteeringAcrossContinueAsNew(t *testing.T) {
	t.Parallel()
	limits := limits.Run{HistoryEvents: 60, Instances: 4, PartitionInstances: 4}
	y := own(t, ControlConfig{limits: limits})
	c := y.workers(t, script{"t03": {{Block: true}}, "t09": {{Block: true}}})
	c.start("n")
	def := &v1.Definition{Name: "carried", Deadline: "1h", Tasks: map[string]*v1.TaskDefinition{
		"held": shellTask(), "ok": {Type: "approval"}, "stuck": shellTask(),
	}}
	for i := range 20 {
		name := fmt.Sprintf("t%02d", i)
		def.Tasks[name] = shellTask()
		if i > 0 {
			def.Tasks[name] = shellTask(fmt.Sprintf("t%02d", i-1))
		}
	}
	def.Tasks["held"].DependsOn = []string{"t03"}
	def.Tasks["stuck"].Constraints = &v1.Constraints{NodeLabels: []string{"nowhere"}}
	def.Tasks["late"] = &v1.TaskDefinition{Type: "approval"}
	for name, instances := range map[string]float64{"few": 2, "many": 8} {
		def.Tasks[name] = proto.CloneOf(def.Tasks["stuck"])
		def.Tasks[name].Parallel = structpb.NewNumberValue(instances)
	}
	for _, name := range []string{"stuck", "late", "few", "many"} {
		def.Tasks[name].Deadline, def.Tasks[name].ContinueOnError = "4s", true
	}
	h := c.submit(c.inputOf(def))
	c.running("t03")
	if err := h.update(names.HoldUpdate, &v1.TaskCommand{Task: "held"}); err != nil {
		t.Fatal(err)
	}
	c.fake.Release("t03")
	c.running("t09")
	if err := h.update(names.PauseUpdate, &v1.RunCommand{}); err != nil {
		t.Fatal(err)
	}
	c.fake.Release("t09")
	stuck := h.until("stuck", func(x *v1.Task) bool { return x.GetState() == "failed" })
	if took := stuck.GetCompletedAt().AsTime().Sub(h.status(&v1.StatusRequest{}).GetRun().GetCreatedAt().AsTime()); took < 3*time.Second || stuck.GetReason() != "deadline" {
		t.Errorf("stuck ended after %v: %v", took, stuck)
	}
	for _, name := range []string{"late", "few", "many"} {
		h.until(name, func(x *v1.Task) bool { return x.GetState() == "failed" && x.GetReason() == "deadline" })
	}
	run := h.status(&v1.StatusRequest{}).GetRun()
	if run.GetState() != "paused" || !run.GetTasks()["held"].GetHeld() || run.GetTasks()["ok"].GetState() != "paused" || c.calls()["t10"] != 0 {
		t.Errorf("the run is %s", summary(run))
	}
	if err := h.update(names.ResumeUpdate, &v1.RunCommand{}); err != nil {
		t.Fatal(err)
	}
	h.until("t19", func(x *v1.Task) bool { return x.GetState() == "completed" })
	run = h.status(&v1.StatusRequest{}).GetRun()
	if held := run.GetTasks()["held"]; run.GetState() == "paused" || !held.GetHeld() || held.GetState() != "queued" || c.calls()["held"] != 0 {
		t.Errorf("the run is %s", summary(run))
	}
	if n := len(h.executions()); n < 3 {
		t.Errorf("%d executions", n)
	}
	for update, task := range map[string]string{names.ReleaseUpdate: "held", names.ApproveUpdate: "ok"} {
		if err := h.update(update, &v1.TaskCommand{Task: task}); err != nil {
			t.Fatal(err)
		}
	}
	want(t, h.wait(), "completed", map[string]string{"held": "completed", "ok": "completed", "stuck": "failed deadline"})
	executions := h.executions()
	for _, i := range []int{0, len(executions) / 2} {
		replay(t, fmt.Sprintf("continued-steered-%d", i), limits, h.history(executions[i]))
	}
}

// TestBatchesThatWaitAcrossContinueAsNew checks that a batch that waits for a node during continue-as-new forms anew,
// and takes no other task's place.
func TestBatchesThatWaitAcrossContinueAsNew(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: limits.Run{HistoryEvents: 60}})
	c := y.workers(t, script{"each": {{Block: true}, {}}})
	c.start("n", func(cfg *NodeConfig) { cfg.MaxParallel = 1 })
	h := c.submit(c.input(`{name: waiting, tasks: {each: {type: shell, spec: {command: x}, parallel: 20, batch: 3, concurrency: 3}}}`))
	c.running("each")
	command := func(update, instance string) {
		t.Helper()
		if err := h.update(update, &v1.TaskCommand{Task: instance}); err != nil {
			t.Fatal(err)
		}
	}
	// First the batches of 3 and of 6 wait for the node, later those of 10 and of 13.
	held := []string{"each[9]", "each[3]", "each[6]"}
	for _, instance := range held {
		command(names.HoldUpdate, instance)
	}
	for _, instance := range held {
		command(names.ReleaseUpdate, instance)
	}
	for len(h.history("")) < 80 {
		command(names.HoldUpdate, "each[19]")
		command(names.ReleaseUpdate, "each[19]")
	}
	c.fake.Release("each")
	want(t, h.wait(), "completed", map[string]string{"each": "completed"})
	if n := len(h.executions()); n < 2 || c.calls()["each"] != 20 {
		t.Errorf("%d executions of the run, %d of instances", n, c.calls()["each"])
	}
}

// TestLargeContext checks that tasks receive a large context through the store.
func TestLargeContext(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{
		"a": {{ContextUpdate: "big=" + strings.Repeat("x", 8<<10)}},
		"b": {{ContextUpdate: "big=" + strings.Repeat("y", 8<<10)}},
	})
	c.start("n")
	h := c.submit(c.input(`{name: context, context: {first: 1}, tasks: {
		a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]},
		c: {type: shell, spec: {command: x}, dependsOn: [b], env: {BIG: "${{ workflow.context.big.substring(0, 3) }}"},
			condition: "workflow.context.big.startsWith('y') && workflow.context.first == 1"}}}`))
	want(t, h.wait(), "completed", map[string]string{"c": "completed"})
	if got := strings.Join(c.seen("c", "BIG"), ""); got != "yyy" {
		t.Errorf("BIG is %q", got)
	}
	replay(t, "context", limits.Run{}, h.history(""))
}

// TestContextGrowsTooLarge checks that a task that would make the context too large fails and leaves the context
// unchanged.
func TestContextGrowsTooLarge(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": {{ContextUpdate: "more=" + strings.Repeat("z", 30<<10)}}})
	c.start("n")
	in := c.input(`{name: context, tasks: {
		a: {type: shell, spec: {command: x}, continueOnError: true},
		b: {type: shell, spec: {command: x}, dependsOn: [a], condition: "!has(workflow.context.more)"}}}`)
	in.Definition.Context = structOf(map[string]any{"first": strings.Repeat("x", 230<<10)})
	run := c.submit(in).wait()
	want(t, run, "completed", map[string]string{"a": "failed context", "b": "completed"})
	if c.calls()["a"] != 1 || !strings.Contains(run.Tasks["a"].GetError(), "bytes") {
		t.Errorf("%d executions: %s", c.calls()["a"], run.Tasks["a"].GetError())
	}
}
