package run_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
)

// TestTasksReportWhenTheyWereQueued checks that a task reports when it was queued and what it merged into the context,
// and an instance when it was created, also in the next execution of the run and in its next generation.
func TestTasksReportWhenTheyWereQueued(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, limits.Run{HistoryEvents: 60, HardHistoryEvents: 60})
	script := workertest.Script{
		"build": {fake.Exit(1), {ContextUpdate: "tag=v7"}}, "each": {{Duration: 10 * time.Millisecond}}, "dead": {fake.Exit(3), {}}, "slow": {{Block: true}},
	}
	c := y.Nodes(t, script)
	c.Start("n")
	def := c.Input(`{name: times, tasks: {
		build: {type: shell, spec: {command: x}, retry: {backoffMs: 1}},
		each: {type: shell, spec: {command: x}, foreach: [x, y], dependsOn: [build]},
		dead: {type: shell, spec: {command: x}, retry: {maxRetries: 0}, dependsOn: [each], continueOnError: true},
		slow: {type: shell, spec: {command: x}, dependsOn: [each]}}}`).GetDefinition()
	for i := range 12 { // enough tasks for several executions
		def.Tasks[fmt.Sprintf("t%02d", i)] = workertest.ShellTask()
		if i > 0 {
			def.Tasks[fmt.Sprintf("t%02d", i)] = workertest.ShellTask(fmt.Sprintf("t%02d", i-1))
		}
	}
	h := c.Submit(c.InputOf(def))
	h.AwaitTask("t11", func(x *v1.Task) bool { return x.GetState() == "completed" })
	c.AwaitRunning("slow")
	open := h.Status(&historyv1.StatusRequest{}).GetRun().GetTasks()
	if len(executionsOf(h)) < 2 {
		t.Error("the run has one execution")
	}
	c.Fake.Release("slow")
	run := h.Wait()
	for when, tasks := range map[string]map[string]*v1.Task{"open": open, "over": run.GetTasks()} {
		build := tasks["build"]
		if !inTurn(build.GetAttempts()[0].GetCompletedAt(), build.GetQueuedAt(), build.GetAssignedAt(), build.GetCompletedAt()) {
			t.Errorf("%s: build waited at other times: %v", when, build)
		}
		if got := build.GetResult().GetContextUpdate().GetFields()["tag"].GetStringValue(); got != "v7" {
			t.Errorf("%s: build has merged %q", when, got)
		}
		if n := len(tasks["each"].GetInstances()); n != 2 {
			t.Errorf("%s: %d instances", when, n)
		}
		for _, i := range tasks["each"].GetInstances() {
			if !inTurn(build.GetCompletedAt(), i.GetCreatedAt(), i.GetQueuedAt(), i.GetAssignedAt()) {
				t.Errorf("%s: instance %v", when, i)
			}
		}
		if slow := tasks["slow"]; !inTurn(tasks["each"].GetCompletedAt(), slow.GetQueuedAt(), slow.GetAssignedAt()) {
			t.Errorf("%s: slow %v", when, slow)
		}
	}

	tasks := h.Rerun(c.InputOf(def), 1, &historyv1.Rerun{From: []string{"dead"}}).Wait().GetTasks()
	was, is := run.GetTasks()["each"].GetInstances()[1], tasks["each"].GetInstances()[1]
	if !is.GetCreatedAt().AsTime().Equal(was.GetCreatedAt().AsTime()) || !is.GetQueuedAt().AsTime().Equal(was.GetQueuedAt().AsTime()) || tasks["build"].GetResult().GetContextUpdate() == nil {
		t.Errorf("in the next generation %v is %v", was, is)
	}
	if dead := tasks["dead"]; !inTurn(run.GetCompletedAt(), dead.GetQueuedAt(), dead.GetAssignedAt()) {
		t.Errorf("dead %v", dead)
	}
}

// inTurn reports whether all times are set and in order. Workflow and node have separate clocks, so small negative
// differences count as equal.
func inTurn(times ...*timestamppb.Timestamp) bool {
	for i, at := range times {
		if at == nil || i > 0 && at.AsTime().Before(times[i-1].AsTime().Add(-50*time.Millisecond)) {
			return false
		}
	}
	return true
}
