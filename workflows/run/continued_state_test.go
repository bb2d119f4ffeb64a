package run_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// TestSteeringSurvivesContinueAsNew checks that user commands to a run, and the remaining time of its tasks, survive
// continue-as-new.
func TestSteeringSurvivesContinueAsNew(t *testing.T) {
	t.Parallel()
	const limit = 12 * time.Second
	limits := limits.Run{HistoryEvents: 60, Instances: 4, PartitionInstances: 4}
	y := workertest.SharedWithin(t, limits)
	c := y.Nodes(t, workertest.Script{"t03": {{Block: true}}, "t09": {{Block: true}}})
	c.Start("n")
	def := &v1.Definition{Name: "carried", Deadline: "1h", Tasks: map[string]*v1.TaskDefinition{
		"held": workertest.ShellTask(), "ok": {Type: "approval"}, "stuck": workertest.ShellTask(),
	}}
	for i := range 20 {
		name := fmt.Sprintf("t%02d", i)
		def.Tasks[name] = workertest.ShellTask()
		if i > 0 {
			def.Tasks[name] = workertest.ShellTask(fmt.Sprintf("t%02d", i-1))
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
		def.Tasks[name].Deadline, def.Tasks[name].ContinueOnError = limit.String(), true
	}
	h := c.Submit(c.InputOf(def))
	c.AwaitRunning("t03")
	if err := sendUpdate(h, names.HoldUpdate, &historyv1.TaskCommand{Task: "held"}); err != nil {
		t.Fatal(err)
	}
	c.Fake.Release("t03")
	c.AwaitRunning("t09")
	if err := sendUpdate(h, names.PauseUpdate, &historyv1.RunCommand{}); err != nil {
		t.Fatal(err)
	}
	c.Fake.Release("t09")
	for _, name := range []string{"stuck", "late", "few", "many"} {
		if x := h.AwaitTask(name, func(x *v1.Task) bool { return x.GetState() == "failed" }); x.GetReason() != "deadline" {
			t.Errorf("%s is %v", name, x)
		}
	}
	run := h.Status(&historyv1.StatusRequest{}).GetRun()
	if run.GetState() != "paused" || !run.GetTasks()["held"].GetHeld() || run.GetTasks()["ok"].GetState() != "paused" || c.Calls()["t10"] != 0 {
		t.Errorf("the run is %s", workertest.Summary(run))
	}
	if err := sendUpdate(h, names.ResumeUpdate, &historyv1.RunCommand{}); err != nil {
		t.Fatal(err)
	}
	h.AwaitTask("t19", func(x *v1.Task) bool { return x.GetState() == "completed" })
	run = h.Status(&historyv1.StatusRequest{}).GetRun()
	if held := run.GetTasks()["held"]; run.GetState() == "paused" || !held.GetHeld() || held.GetState() != "queued" || c.Calls()["held"] != 0 {
		t.Errorf("the run is %s", workertest.Summary(run))
	}
	if n := len(executionsOf(h)); n < 3 {
		t.Errorf("%d executions", n)
	}
	for update, task := range map[string]string{names.ReleaseUpdate: "held", names.ApproveUpdate: "ok"} {
		if err := sendUpdate(h, update, &historyv1.TaskCommand{Task: task}); err != nil {
			t.Fatal(err)
		}
	}
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"held": "completed", "ok": "completed", "stuck": "failed deadline"})
	executions := executionsOf(h)
	for i, execution := range slices.Backward(executions) {
		isFirst := i == len(executions)-1
		for _, left := range timersOf(h, execution, "deadline of stuck") {
			if isFirst && left != limit || !isFirst && left >= limit {
				t.Errorf("in an execution, %v of %v are left; it is the first: %v", left, limit, isFirst)
			}
		}
	}
	for _, i := range []int{0, len(executions) / 2} {
		workertest.Replay(t, fmt.Sprintf("continued-steered-%d", i), limits, h.History(executions[i]))
	}
}

// timersOf returns the durations of the timers with a summary that an execution has started.
func timersOf(h *workertest.Handle, execution, summary string) (all []time.Duration) {
	for _, e := range h.History(execution) {
		if timer := e.GetTimerStartedEventAttributes(); timer != nil && string(e.GetUserMetadata().GetSummary().GetData()) == strconv.Quote(summary) {
			all = append(all, timer.GetStartToFireTimeout().AsDuration())
		}
	}
	return all
}

// TestWaitingBatchFormsAnewAcrossContinueAsNew checks that a batch that waits for a node during continue-as-new forms
// anew, and takes no other task's place.
func TestWaitingBatchFormsAnewAcrossContinueAsNew(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, limits.Run{HistoryEvents: 60})
	c := y.Nodes(t, workertest.Script{"each": {{Block: true}, {}}})
	c.Start("n", func(cfg *workers.NodeConfig) { cfg.MaxParallel = 1 })
	h := c.Submit(c.Input(`{name: waiting, tasks: {each: {type: shell, spec: {command: x}, parallel: 20, batch: 3, concurrency: 3}}}`))
	c.AwaitRunning("each")
	command := func(update, instance string) {
		t.Helper()
		if err := sendUpdate(h, update, &historyv1.TaskCommand{Task: instance}); err != nil {
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
	for len(h.History("")) < 80 {
		command(names.HoldUpdate, "each[19]")
		command(names.ReleaseUpdate, "each[19]")
	}
	c.Fake.Release("each")
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"each": "completed"})
	if n := len(executionsOf(h)); n < 2 || c.Calls()["each"] != 20 {
		t.Errorf("%d executions of the run, %d of instances", n, c.Calls()["each"])
	}
}
