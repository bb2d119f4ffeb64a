package gateway

import (
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

// TestMemory remembers what a run said as long as it holds, for a while, and not more than it may.
func TestMemory(t *testing.T) {
	var m memory
	status := &v1.StatusResponse{Revision: 3}
	m.put("r-1", "x", 5, status)
	if got := m.get("r-1", "x"); got == nil || got.status != status || got.events != 5 {
		t.Errorf("got %v", got)
	}
	if got := m.get("r-1", "y"); got != nil {
		t.Errorf("of another execution: %v", got)
	}
	large := &v1.StatusResponse{Run: &v1.Run{Error: string(make([]byte, memoryBytes*2/3))}}
	m.put("r-2", "x", 1, large)
	m.put("r-3", "x", 1, large)
	if m.get("r-2", "x") == nil || m.get("r-3", "x") != nil {
		t.Error("it does not keep to its size")
	}
	m.put("r-2", "x", 2, status)
	if m.put("r-3", "x", 1, large); m.get("r-3", "x") == nil {
		t.Error("what was replaced takes room")
	}
	for _, s := range m.runs {
		s.at = s.at.Add(-2 * memoryTime)
	}
	if m.get("r-1", "x") != nil || len(m.runs) != 0 || m.bytes != 0 {
		t.Errorf("after %s: %v", 2*memoryTime, m.runs)
	}
}

// TestMemoryFollows reads a run again and again while it changes, and sees each change.
func TestMemoryFollows(t *testing.T) {
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
	if _, err := f.again(t, id, "b"); err != nil {
		t.Fatal(err)
	}
	if run := f.get(t, id); run.GetState() != "running" || run.GetTasks()["b"].GetReason() != "again" {
		t.Fatalf("again: %v", run)
	}
	end(t, id, "completed")
}
