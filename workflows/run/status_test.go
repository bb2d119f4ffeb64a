package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
)

// TestStatusPagesReturnEachChangeOnce checks that a client that pages through the status of an open run gets every
// task, each change once, and finally nothing more.
func TestStatusPagesReturnEachChangeOnce(t *testing.T) {
	t.Parallel()
	def := &v1.Definition{Name: "pages", Tasks: map[string]*v1.TaskDefinition{"last": workertest.ShellTask()}}
	for i := range 30 {
		def.Tasks[fmt.Sprintf("t%d", i)] = workertest.ShellTask()
		def.Tasks["last"].DependsOn = append(def.Tasks["last"].DependsOn, fmt.Sprintf("t%d", i))
	}
	c := workertest.Shared(t).Nodes(t, workertest.Script{"last": {{Block: true}}})
	c.Start("a")
	h := c.Submit(c.InputOf(def))
	c.AwaitRunning("last")
	h.AwaitTask("last", func(task *v1.Task) bool { return task.GetState() == "assigned" })

	seen := map[string]int{}
	pages := 0
	req := &historyv1.StatusRequest{MaxBytes: 500}
	for more := true; more; pages++ {
		res := h.Status(req)
		for name, task := range res.GetRun().GetTasks() {
			seen[name]++
			if name != "last" && task.GetState() != "completed" {
				t.Errorf("task %s: %v", name, task)
			}
		}
		if res.GetTaskCount() != 31 {
			t.Errorf("task count %d", res.GetTaskCount())
		}
		req.Since, more = res.GetRevision(), res.GetMore()
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("task %s came %d times", name, n)
		}
	}
	if len(seen) != 31 || pages < 5 {
		t.Errorf("%d tasks in %d pages", len(seen), pages)
	}
	if res := h.Status(req); len(res.GetRun().GetTasks()) != 0 || res.GetMore() || res.GetRevision() != req.GetSince() || res.GetRun().GetContext() != nil {
		t.Errorf("there is more where nothing has changed: %v", res)
	}
	c.Fake.Release("last")
	h.Wait()
	// The query also works after the end.
	if res := h.Status(req); len(res.GetRun().GetTasks()) != 1 || res.GetRun().GetState() != "completed" {
		t.Errorf("after the end: %v", res)
	}
}

// TestHistoryNamesTasksAndNodes checks that the history names tasks and nodes and shows failed attempts, for people who
// read it in the Web UI.
func TestHistoryNamesTasksAndNodes(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"build": {fake.Exit(3), {}}})
	h := c.Submit(c.Input(`{name: readable, tasks: {build: {type: shell, priority: 9, spec: {command: x}, retry: {backoffMs: 1}}}}`))
	h.AwaitTask("build", func(task *v1.Task) bool { return task.GetError() != "" })
	c.Start("a")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	if first := run.GetTasks()["build"].GetAttempts()[0]; first.GetState() != "failed" || first.GetReason() != "exit_code" || first.GetExitCode() != 3 || first.GetNode() != c.Name("a") || first.GetStartedAt() == nil {
		t.Errorf("first attempt %v", first)
	}
	var said, failed []string
	attempts := map[int64]string{} // by the ID of the event that scheduled them
	for _, e := range h.History("") {
		if data := e.GetUserMetadata().GetSummary().GetData(); data != nil {
			said = append(said, string(data))
		}
		if f := e.GetActivityTaskFailedEventAttributes(); f != nil {
			failed = append(failed, attempts[f.GetScheduledEventId()]+": "+f.GetFailure().GetMessage())
		}
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == "Execute" {
			attempts[e.GetEventId()] = a.GetActivityId()
			if !strings.HasPrefix(a.GetActivityId(), "build#") || a.GetTaskQueue().GetName() != "node:"+c.Name("a")+":cpu" || a.GetPriority().GetPriorityKey() != 2 {
				t.Errorf("attempt %s on %s with priority %v", a.GetActivityId(), a.GetTaskQueue().GetName(), a.GetPriority())
			}
		}
	}
	for _, want := range []string{"build on " + c.Name("a"), "build on " + c.Name("a") + ", attempt 1", "back-off of build", "wait for a node"} {
		if !slices.Contains(said, `"`+want+`"`) {
			t.Errorf("no summary %q in %q", want, said)
		}
	}
	if !slices.Equal(failed, []string{"build#1: exit code 3"}) {
		t.Errorf("failed attempts %q", failed)
	}
}
