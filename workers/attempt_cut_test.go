package workers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor/fake"
	"switchyard/activities/registry"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/names"
)

func cutInput(c *workertest.Nodes) *v1.RunInput {
	c.T.Helper()
	in := c.Input(`{name: cut, tasks: {a: {type: shell, spec: {command: x}, retry: {backoffMs: 1}}}}`)
	in.Options.HeartbeatTimeout = durationpb.New(workertest.ShortHeartbeat)
	return in
}

// TestCutEndsBeforeLease checks that a node that is cut off for less than its leases continues its attempts.
func TestCutEndsBeforeLease(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Block: true}}})
	l := c.StartBehindLink("n")
	in := cutInput(c)
	in.Options.HeartbeatTimeout = durationpb.New(3 * workertest.ShortHeartbeat) // a busy machine also needs some of the lease
	h := c.Submit(in)
	c.AwaitRunning("a")
	lease := c.Fake.Calls()[0].Attempt.Lease
	before := lease.KillAt()
	l.Cut()
	const short = 7 * time.Second // longer than the time between two heartbeats
	time.Sleep(short)
	l.Mend()
	workertest.Eventually(t, "the lease is renewed", func() bool { return lease.KillAt() > before.Add(short) })
	c.Fake.Release("a")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	if n := c.Calls()["a"]; n != 1 || run.GetTasks()["a"].GetAttempt() != 0 {
		t.Errorf("it ran %d times: %v", n, run.GetTasks()["a"])
	}
}

// TestCutOutlastsLease checks that the attempts of a node that is cut off for long end before they start elsewhere.
func TestCutOutlastsLease(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Block: true, IgnoreTerm: true}}})
	l := c.StartBehindLink("n")
	h := c.Submit(cutInput(c))
	c.AwaitRunning("a")
	// The server knows that the attempt runs.
	workertest.Eventually(t, "the server knows that it runs", h.HasSpawned)
	c.Start("m")
	l.Cut()
	both := false
	err := c.Fake.Await(t.Context(), func(calls []fake.Call, running map[string]int) bool {
		both = both || running["a"] > 1 || len(calls) > 1 && !calls[0].Attempt.Lease.Over()
		return len(calls) > 1 && running["a"] == 1
	})
	if err != nil {
		t.Fatal(err)
	}
	if both {
		t.Error("the task ran on two nodes at once")
	}
	l.Mend()
	c.Fake.Release("a")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	if a := run.GetTasks()["a"]; a.GetNode() != c.Name("m") || a.GetAttempt() != 1 || c.Calls()["a"] != 2 {
		t.Errorf("it ran %d times: %v", c.Calls()["a"], a)
	}
}

// TestReportLost checks that an attempt that completes on a cut-off node does not run again: its record is the result.
func TestReportLost(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Block: true, Stdout: "once"}}})
	l := c.StartBehindLink("n")
	h := c.Submit(cutInput(c))
	c.AwaitRunning("a")
	workertest.Eventually(t, "the server knows that it runs", h.HasSpawned)
	c.Start("m")
	l.Cut()
	c.Fake.Release("a")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	if a := run.GetTasks()["a"]; c.Calls()["a"] != 1 || a.GetNode() != c.Name("n") || a.GetResult().GetStdout() != "once" {
		t.Errorf("it ran %d times: %v", c.Calls()["a"], a)
	}
}

// TestLastReportLost checks that the last attempt of a task that completes on a cut-off node is not lost, because the
// run looks for its record before the task ends.
func TestLastReportLost(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Block: true, Stdout: "once"}}})
	l := c.StartBehindLink("n")
	in := cutInput(c)
	in.Definition.Tasks["a"].Retry = &v1.RetryPolicy{MaxRetries: new(int32)}
	h := c.Submit(in)
	c.AwaitRunning("a")
	workertest.Eventually(t, "the server knows that it runs", h.HasSpawned)
	l.Cut()
	c.Fake.Release("a")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"a": "completed"})
	if a := run.GetTasks()["a"]; c.Calls()["a"] != 1 || a.GetResult().GetStdout() != "once" {
		t.Errorf("it ran %d times: %v", c.Calls()["a"], a)
	}
}

// TestLastReportOfBatchLost checks that instances of a batch that complete on a cut-off node are not lost either.
func TestLastReportOfBatchLost(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"each": {{Stdout: "once"}, {Block: true, Stdout: "once"}, {Stdout: "once"}}})
	l := c.StartBehindLink("n")
	in := c.Input(`{name: cut, tasks: {each: {type: shell, spec: {command: x}, parallel: 3, batch: 3, retry: {maxRetries: 0}}}}`)
	in.Options.HeartbeatTimeout = durationpb.New(workertest.ShortHeartbeat)
	h := c.Submit(in)
	c.AwaitRunning("each")
	workertest.Eventually(t, "the server knows that it runs", h.HasSpawned)
	l.Cut()
	c.Fake.Release("each")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"each": "completed"})
	for _, i := range run.GetTasks()["each"].GetInstances() {
		if i.GetResult().GetStdout() != "once" {
			t.Errorf("instance %d: %v", i.GetIndex(), i)
		}
	}
	if n := c.Calls()["each"]; n != 3 {
		t.Errorf("%d instances ran", n)
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
	in := cutInput(c)
	in.Definition.Tasks["a"].Retry = &v1.RetryPolicy{MaxRetries: new(int32)}
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
	if a := h.Status(&v1.StatusRequest{}).GetRun().GetTasks()["a"]; a.GetCompletedAt() != nil {
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
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Block: true}}})
	l := c.StartBehindLink("n")
	in := cutInput(c)
	in.Definition.Tasks["a"].Retry = &v1.RetryPolicy{MaxRetries: new(int32)}
	h := c.Submit(in)
	c.AwaitRunning("a")
	workertest.Eventually(t, "the server knows that it runs", h.HasSpawned)
	l.Cut()
	workertest.CheckRun(t, h.Wait(), "failed", map[string]string{"a": "lost"})
	// As if the node had written its spooled record.
	record := &v1.ExecuteResponse{State: "completed", Node: c.Name("n"), Result: &v1.TaskResult{Stdout: "late"}}
	if err := c.Store.PutMessage(t.Context(), storekey.Result(h.Home(), 0, "a", 0), record); err != nil {
		t.Fatal(err)
	}
	l.Mend()
	run := h.Rerun(in, 1, &v1.Rerun{Failed: true}).Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"a": "completed"})
	if a := run.GetTasks()["a"]; c.Calls()["a"] != 1 || a.GetResult().GetStdout() != "late" {
		t.Errorf("it ran %d times: %v", c.Calls()["a"], a)
	}
}
