package run_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
)

// TestHistoryNamesTasksAndNodes checks that the history names tasks and nodes and shows failed attempts, for people who
// read it in the Web UI, and that a task has its own heartbeat time-out.
func TestHistoryNamesTasksAndNodes(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"build": {fake.Exit(3), {}}})
	h := c.Submit(c.Input(`{name: readable, tasks: {build: {type: shell, priority: 9, heartbeatTimeout: 2m, spec: {command: x}, retry: {backoffMs: 1}}}}`))
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
			if !strings.HasPrefix(a.GetActivityId(), "build#") || a.GetTaskQueue().GetName() != "node:"+c.Name("a")+":cpu" || a.GetPriority().GetPriorityKey() != 2 ||
				a.GetHeartbeatTimeout().AsDuration() != 2*time.Minute {
				t.Errorf("an attempt is %v", a)
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
