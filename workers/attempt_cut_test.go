package workers_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/registry"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/names"
)

// TestCutOutlastsLease cuts a node off for longer than the leases of its attempts. Those that complete there do not run again:
// their records are the results, even without another attempt in reserve, and for the instances of a batch. One that does
// not complete ends before it starts elsewhere.
func TestCutOutlastsLease(t *testing.T) {
	t.Parallel()
	once := fake.Step{Block: true, Stdout: "once"}
	c := workertest.Shared(t).Nodes(t, workertest.Script{
		"stuck": {{Block: true, IgnoreTerm: true}}, "done": {once}, "last": {once}, "each": {{Stdout: "once"}, once, {Stdout: "once"}},
	})
	l := c.StartBehindLink("n")
	in := c.Input(`{name: cut, tasks: {
		stuck: {type: shell, spec: {command: x}, retry: {backoffMs: 1}},
		done: {type: shell, spec: {command: x}, retry: {backoffMs: 1}},
		last: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
		each: {type: shell, spec: {command: x}, parallel: 3, batch: 3, retry: {maxRetries: 0}}}}`)
	in.Options.HeartbeatTimeout = durationpb.New(workertest.ShortHeartbeat)
	h := c.Submit(in)
	for _, task := range []string{"stuck", "done", "last", "each"} {
		c.AwaitRunning(task)
	}
	workertest.Eventually(t, "the server knows that they run", func() bool { return h.CountSpawned() == 4 })
	c.Start("m")
	l.Cut()
	for _, task := range []string{"done", "last", "each"} {
		c.Fake.Release(task)
	}
	both := false
	err := c.Fake.Await(t.Context(), func(calls []fake.Call, running map[string]int) bool {
		var leases []*executor.Lease
		for _, call := range calls {
			if call.Task == "stuck" {
				leases = append(leases, call.Attempt.Lease)
			}
		}
		both = both || running["stuck"] > 1 || len(leases) > 1 && !leases[0].Over()
		return len(leases) > 1 && running["stuck"] == 1
	})
	if err != nil {
		t.Fatal(err)
	}
	if both {
		t.Error("the task ran on two nodes at once")
	}
	l.Mend()
	c.Fake.Release("stuck")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	if a := run.GetTasks()["stuck"]; a.GetNode() != c.Name("m") || a.GetAttempt() != 1 {
		t.Errorf("stuck: %v", a)
	}
	for _, task := range []string{"done", "last"} {
		if a := run.GetTasks()[task]; a.GetNode() != c.Name("n") || a.GetResult().GetStdout() != "once" {
			t.Errorf("%s: %v", task, a)
		}
	}
	for _, i := range run.GetTasks()["each"].GetInstances() {
		if i.GetResult().GetStdout() != "once" {
			t.Errorf("instance %d: %v", i.GetIndex(), i)
		}
	}
	if got := fmt.Sprint(c.Calls()); got != "map[done:1 each:3 last:1 stuck:2]" {
		t.Errorf("executions: %s", got)
	}
}

// TestLostAttemptIsAwaitedWhileItsNodeOwesAnswer checks that a run waits until a live node has recorded the end of an
// attempt, however long that takes.
func TestLostAttemptIsAwaitedWhileItsNodeOwesAnswer(t *testing.T) {
	t.Parallel()
	y := workertest.Shared(t)
	large := fmt.Sprintf(`{"fill": %q}`, strings.Repeat("x", 40_000)) // too large for the node to report without the record
	c := y.Nodes(t, workertest.Script{"a": {{Block: true, Output: large}}})
	way := filepath.Join(t.TempDir(), "store")
	lead := func() {
		if err := os.Symlink(filepath.Join(y.Dir, "store"), way); err != nil {
			t.Fatal(err)
		}
	}
	lead()
	own, err := store.Open(t.Context(), way)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	l := c.StartBehindLink("n", func(cfg *workers.NodeConfig) {
		cfg.Store = own
		cfg.OfflineAfter = workertest.Limit // so that the cut does not take it out of the fleet
	})
	in := c.Input(`{name: cut, tasks: {a: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}}}`)
	in.Options.HeartbeatTimeout = durationpb.New(workertest.ShortHeartbeat)
	h := c.Submit(in)
	c.AwaitRunning("a")
	workertest.Eventually(t, "the server knows that it runs", h.HasSpawned)
	l.Cut()
	if err := os.Remove(way); err != nil {
		t.Fatal(err)
	}
	c.Fake.Release("a")
	workertest.Eventually(t, "the attempt is lost", func() bool { return awaitsActivity(h, names.AwaitAnswerActivity) })
	l.Mend()
	reg := registry.New(c.Conn)
	var first int64
	workertest.Eventually(t, "the node has beaten for some time", func() bool {
		e, err := reg.Entry(t.Context(), c.Name("n"))
		if err != nil || e.Snapshot == nil {
			return false
		}
		if first == 0 {
			first = e.Snapshot.GetSequence()
		}
		return e.Snapshot.GetSequence() > first+6
	})
	if a := h.Status(&historyv1.StatusRequest{}).GetRun().GetTasks()["a"]; a.GetCompletedAt() != nil {
		t.Fatalf("it has ended: %v", a)
	}
	lead()
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"a": "completed"})
	if n := c.Calls()["a"]; n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// awaitsActivity reports whether an activity of the given type is pending.
func awaitsActivity(h *workertest.Handle, activity string) bool {
	h.T.Helper()
	d := workertest.Describe(h.T, h.Conn, h.ID, "")
	return slices.ContainsFunc(d.GetPendingActivities(), func(a *workflowpb.PendingActivityInfo) bool {
		return a.GetActivityType().GetName() == activity
	})
}

// TestRetryFindsWhatLostAttemptHasLeft checks that a new generation of a run looks for results that lost attempts of
// earlier generations have stored meanwhile.
func TestRetryFindsWhatLostAttemptHasLeft(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Result: executor.Result{Failure: &executor.Failure{Reason: v1.ReasonEvicted, Err: errors.New("evicted")}}}}})
	c.Start("n")
	in := c.Input(`{name: cut, tasks: {a: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}}}`)
	h := c.Submit(in)
	workertest.CheckRun(t, h.Wait(), "failed", map[string]string{"a": "lost"})
	// As if the node had written its spooled record.
	record := &historyv1.ExecuteResponse{State: "completed", Node: c.Name("n"), Result: &v1.TaskResult{Stdout: "late"}}
	if err := c.Store.PutMessage(t.Context(), storekey.Result(h.Home(), 0, "a", 0), record); err != nil {
		t.Fatal(err)
	}
	run := h.Rerun(in, 1, &historyv1.Rerun{Failed: true}).Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"a": "completed"})
	if a := run.GetTasks()["a"]; c.Calls()["a"] != 1 || a.GetResult().GetStdout() != "late" {
		t.Errorf("it ran %d times: %v", c.Calls()["a"], a)
	}
}
