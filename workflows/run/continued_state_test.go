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
	"switchyard/workers/workertest"
	"switchyard/workflows/names"
)

// TestSteeringSurvivesContinueAsNew checks that user commands to a run, and the remaining time of its tasks, survive
// continue-as-new.
func TestSteeringSurvivesContinueAsNew(t *testing.T) {
	t.Parallel()
	const limit = 12 * time.Second
	y := workertest.SharedWithin(t, quietLimits)
	c := y.Nodes(t, workertest.Script{"t03": {{Block: true}}, "t09": {{Block: true}}})
	c.Start("n")
	def := chainBeside(20, map[string]*v1.TaskDefinition{
		"held": workertest.ShellTask("t03"), "ok": {Type: "approval"}, "late": {Type: "approval"}, "stuck": workertest.ShellTask(),
	})
	def.Deadline = "1h"
	def.Tasks["stuck"].Constraints = &v1.Constraints{NodeLabels: []string{"nowhere"}}
	for name, instances := range map[string]float64{"few": 2, "many": 8} {
		def.Tasks[name] = proto.CloneOf(def.Tasks["stuck"])
		def.Tasks[name].Parallel = structpb.NewNumberValue(instances)
	}
	for _, name := range []string{"stuck", "late", "few", "many"} {
		def.Tasks[name].Deadline, def.Tasks[name].ContinueOnError = limit.String(), true
	}
	h := c.Submit(c.InputOf(def))
	c.AwaitRunning("t03")
	mustUpdate(h, names.HoldUpdate, "held")
	c.Fake.Release("t03")
	c.AwaitRunning("t09")
	mustSteerRun(h, names.PauseUpdate)
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
	mustSteerRun(h, names.ResumeUpdate)
	h.AwaitTask("t19", func(x *v1.Task) bool { return x.GetState() == "completed" })
	run = h.Status(&historyv1.StatusRequest{}).GetRun()
	if held := run.GetTasks()["held"]; run.GetState() == "paused" || !held.GetHeld() || held.GetState() != "queued" || c.Calls()["held"] != 0 {
		t.Errorf("the run is %s", workertest.Summary(run))
	}
	if n := len(executionsOf(h)); n < 3 {
		t.Errorf("%d executions", n)
	}
	for update, task := range map[string]string{names.ReleaseUpdate: "held", names.ApproveUpdate: "ok"} {
		mustUpdate(h, update, task)
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
		workertest.Replay(t, fmt.Sprintf("continued-steered-%d", i), quietLimits, h.History(executions[i]))
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
