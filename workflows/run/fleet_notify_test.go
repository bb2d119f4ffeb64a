package run_test

import (
	"fmt"
	"slices"
	"testing"

	"go.temporal.io/sdk/client"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// TestFleetIsToldOfAllRuns checks that the entries of the fleet apply to runs without entries of their own, at their ends and before,
// and not to child runs.
func TestFleetIsToldOfAllRuns(t *testing.T) {
	t.Parallel()
	entries := []*v1.Notification{{To: "fleet", On: []string{v1.NotifyFailed, v1.NotifyCancelled, v1.NotifyApproval}, Message: "${{ event }} of ${{ run.name }} ${{ task }}"}}
	c := workertest.Own(t, workers.ControlConfig{Notify: entries, ExternalURL: func() string { return "https://yard.example.com" }}).Nodes(t, workertest.Script{"build": {fake.Exit(1), fake.Exit(1)}})
	c.Start("a")
	hook := newReceiverNamed(c, "fleet", 0)
	tasks := "tasks: { build: { type: shell, retry: { maxRetries: 0 }, spec: { command: x } } }"
	c.Do("name: own\n" + tasks + "\nnotify: [{ to: fleet, on: [failed], message: own entry }]")
	parent := c.Do(`{name: parent, tasks: {down: {type: run, spec: {definition: ` + childDefinition(c, "child", "build", "") + `}, retry: {maxRetries: 0}}}}`)
	workertest.CheckRun(t, parent, "failed", map[string]string{"down": "failed"})
	asks := c.Submit(c.Input("{name: asks, tasks: {ask: {type: approval, spec: {message: Go}}}}"))
	asks.AwaitTask("ask", func(task *v1.Task) bool { return task.GetState() == v1.TaskPaused })
	hook.await(3)
	asks.Cancel("enough")
	asks.Wait()
	workertest.Replay(t, "fleet-notify", limits.Run{}, asks.History(""))
	h, err := c.Conn.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: names.NewRunID("absent"), TaskQueue: names.ControlQueue}, names.RunWorkflow, &historyv1.RunInput{Workflow: "absent"})
	if err != nil || h.Get(t.Context(), nil) == nil {
		t.Fatalf("a run of a workflow that is not stored: %v", err)
	}
	workertest.Replay(t, "unbegun-notify", limits.Run{}, (&workertest.Handle{Nodes: c, ID: h.GetID(), Workflow: h}).History(""))
	var got []string
	for _, document := range hook.await(5) {
		data := document["data"].(map[string]any)
		got = append(got, fmt.Sprint(data["message"]))
		want := fmt.Sprint("https://yard.example.com/ui/runs/", data["run"])
		if task := data["task"]; task != nil {
			want += fmt.Sprint("/tasks/", task)
		}
		if data["url"] != want {
			t.Errorf("the link is %v", data["url"])
		}
	}
	slices.Sort(got)
	if want := []string{"cancelled of asks ", "failed of absent ", "failed of parent ", "own entry", "waiting_approval of asks ask"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}
