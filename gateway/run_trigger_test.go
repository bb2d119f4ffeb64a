package gateway

import (
	"testing"
	"time"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/visibility"
)

// TestRunsShowTheirTrigger checks that every response shows how a run was started, while the run is open and
// after its end.
func TestRunsShowTheirTrigger(t *testing.T) {
	t.Parallel()
	f := start(t)
	want := func(id, trigger, parent string) {
		t.Helper()
		if run := f.get(t, id); run.GetTrigger() != trigger || run.GetParent() != parent {
			t.Errorf("get: run %s is started by %q of %q, want %q of %q", id, run.GetTrigger(), run.GetParent(), trigger, parent)
		}
		if w := f.watch(t, id); !w.next() || w.run.GetTrigger() != trigger || w.run.GetParent() != parent {
			t.Errorf("watch: run %s is started by %q of %q, want %q of %q", id, w.run.GetTrigger(), w.run.GetParent(), trigger, parent)
		}
		var run *v1.Run
		eventually(t, "visibility has the run", func() bool {
			for _, run = range answer(t, f.client.ListRuns, &v1.ListRunsRequest{Name: "triggered", Trigger: trigger}).GetItems() {
				if run.GetId() == id {
					return true
				}
			}
			return false
		})
		if run.GetTrigger() != trigger || run.GetParent() != parent {
			t.Errorf("list: run %s is started by %q of %q, want %q of %q", id, run.GetTrigger(), run.GetParent(), trigger, parent)
		}
	}
	submitted := f.submit(t, "triggered")
	want(submitted, v1.TriggerSubmit, "")
	child := startedWith(t, visibility.StartedBy(submitted, "triggered", time.Now()))
	want(child, v1.TriggerChild, submitted)
	end(t, child, "completed")
	want(child, v1.TriggerChild, submitted)

	set(t, submitted, "build", 1, &v1.Task{State: "failed"})
	end(t, submitted, "failed")
	want(submitted, v1.TriggerSubmit, "")
	if _, err := f.retryRun(t, submitted); err != nil {
		t.Fatal(err)
	}
	want(submitted, v1.TriggerRetry, "")
	if err := temporalClient.TerminateWorkflow(t.Context(), submitted, "", ""); err != nil {
		t.Fatal(err)
	}
	want(submitted, v1.TriggerRetry, "")
	rerun, err := f.client.RerunRun(t.Context(), connect.NewRequest(&v1.RerunRunRequest{Id: submitted}))
	if err != nil {
		t.Fatal(err)
	}
	want(rerun.Msg.GetId(), v1.TriggerRerun, "")
}
