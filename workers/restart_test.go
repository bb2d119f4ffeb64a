package workers_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor/fake"
	"switchyard/activities/hostlist"
	"switchyard/activities/notifications"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/names"
)

// TestControlRestart replaces the control worker in the middle of a run by one with an empty placement queue. Running
// tasks continue, waiting tasks get places, and nothing runs twice.
func TestControlRestart(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{})
	c := y.Nodes(t, workertest.Script{"a": {{Block: true}}, "b": {{Block: true}}, "flaky": {fake.Exit(1), {}}})
	c.Start("n", func(cfg *workers.NodeConfig) { cfg.MaxParallel = 2 })
	h := c.Submit(c.Input(`{name: restart, tasks: {
		a: {type: shell, priority: 9, spec: {command: x}}, b: {type: shell, priority: 9, spec: {command: x}},
		w1: {type: shell, spec: {command: x}}, w2: {type: shell, spec: {command: x}, dependsOn: [w1]},
		flaky: {type: shell, spec: {command: x}, retry: {backoffMs: 1}},
		gpu: {type: shell, spec: {command: x}, constraints: {nodeLabels: [later]}}}}`))
	c.AwaitRunning("a")
	c.AwaitRunning("b")
	h.AwaitTask("w1", func(task *v1.Task) bool { return task.GetState() == "queued" && task.GetError() != "" })
	h.AwaitTask("gpu", func(task *v1.Task) bool { return task.GetError() != "" })

	y.Control.Stop()
	c.Fake.Release("a") // ends while no control process runs
	control, err := workers.StartControl(t.Context(), y.Config)
	if err != nil {
		t.Fatal(err)
	}
	y.Control = control
	h.AwaitTask("a", func(task *v1.Task) bool { return task.GetState() == "completed" })
	h.AwaitTask("w2", func(task *v1.Task) bool { return task.GetState() == "completed" })
	h.AwaitTask("flaky", func(task *v1.Task) bool { return task.GetState() == "completed" })
	if task := h.Status(&historyv1.StatusRequest{}).GetRun().GetTasks()["b"]; task.GetState() != "assigned" {
		t.Errorf("b should still run: %v", task)
	}
	c.Start("m", workertest.WithLabels("later"))
	h.AwaitTask("gpu", func(task *v1.Task) bool { return task.GetState() == "completed" })
	c.Fake.Release("b")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	for task, n := range c.Calls() {
		if want := map[bool]int{true: 2, false: 1}[task == "flaky"]; n != want {
			t.Errorf("task %s ran %d times, want %d", task, n, want)
		}
	}
	if b := run.Tasks["b"]; b.GetAttempt() != 0 || b.GetNode() != c.Name("n") {
		t.Errorf("b: %v", b)
	}
}

// TestDeliveryInProgressOutlivesItsWorker stops the control process while a receiver that does not recognize duplicates takes its time.
func TestDeliveryInProgressOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{})
	var requests atomic.Int32
	arrived, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if requests.Add(1) == 1 {
			close(arrived)
			<-answer
		}
	}))
	t.Cleanup(server.Close)
	if _, _, err := y.Targets.Put(t.Context(), "ops", &v1.NotificationTarget{Config: &v1.NotificationTarget_Ntfy{Ntfy: &v1.NtfyTarget{Url: server.URL}}}, ""); err != nil {
		t.Fatal(err)
	}
	h, err := y.Conn.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: names.NotifyWorkflowID("ci-1", 0, v1.NotifyLate, ""), TaskQueue: names.ControlQueue}, names.NotifyWorkflow, &historyv1.NotifyInput{
		Event: v1.NotifyLate, At: timestamppb.Now(), Run: &historyv1.RunView{Id: "ci-1", Name: "ci"}, Notify: []*v1.Notification{{To: "ops", On: []string{v1.NotifyLate}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	<-arrived
	y.Control.Stop()
	time.AfterFunc(100*time.Millisecond, func() { close(answer) })
	y.Config.Sender.Close()
	if pending := workertest.Describe(t, y.Conn, h.GetID(), "").GetPendingActivities(); len(pending) != 0 {
		t.Errorf("the outcome of the delivery is not known to the server: %v", pending)
	}
	y.Config.Sender = notifications.NewSender(y.Targets, y.Vault, hostlist.List{"127.0.0.1"}, time.Now)
	if y.Control, err = workers.StartControl(t.Context(), y.Config); err != nil {
		t.Fatal(err)
	}
	if err := h.Get(t.Context(), nil); err != nil || requests.Load() != 1 {
		t.Errorf("the message was sent %d times, and the workflow ended with %v", requests.Load(), err)
	}
}
