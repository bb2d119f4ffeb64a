package gateway

import (
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

// TestGetRunFollowsChanges reads a changing run repeatedly and checks that it sees each change.
func TestGetRunFollowsChanges(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "recalled", "a", "b", "c", "d", "e")
	for i, state := range []string{"queued", "assigned", "failed", "queued", "completed"} {
		set(t, id, "b", int32(i), &v1.Task{State: state})
		tasks := f.get(t, id).GetTasks()
		if len(tasks) != 5 || tasks["b"].GetState() != state || tasks["a"].GetState() != "pending" {
			t.Fatalf("got %v", tasks)
		}
		if again := f.get(t, id).GetTasks(); again["b"].GetState() != state {
			t.Fatalf("then got %v", again)
		}
	}
	end(t, id, "completed")
	for range 2 {
		if run := f.get(t, id); run.GetState() != "completed" || len(run.GetTasks()) != 5 {
			t.Fatalf("at the end: %v", run)
		}
	}
	if _, err := f.retryRun(t, id, "b"); err != nil {
		t.Fatal(err)
	}
	if run := f.get(t, id); run.GetState() != "running" || run.GetTasks()["b"].GetReason() != "again" {
		t.Fatalf("again: %v", run)
	}
	end(t, id, "completed")
}
