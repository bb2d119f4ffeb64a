package run_test

import (
	"fmt"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor/fake"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// terminateRun closes the run from outside and stores its last status, as `cancel --force` does.
func terminateRun(h *workertest.Handle) {
	h.T.Helper()
	status := h.Status(&historyv1.StatusRequest{})
	status.Run.State, status.Run.Reason = v1.RunFailed, v1.ReasonTerminated
	terminate(h)
	if err := h.Store.PutMessage(h.T.Context(), storekey.Status(h.Home(), status.GetRun().GetGeneration()), status); err != nil {
		h.T.Fatal(err)
	}
}

// generationAfterForce starts the next generation of a run that was closed from outside.
func generationAfterForce(h *workertest.Handle, in *historyv1.RunInput, generation int32) *workertest.Handle {
	h.T.Helper()
	in = proto.CloneOf(in)
	in.Terminated = describeRun(h).GetWorkflowExecutionInfo().GetExecution().GetRunId()
	return h.Rerun(in, generation, &historyv1.Rerun{Failed: true})
}

// TestRetryAfterForcedEndWaitsForOldAttempts checks that the generation after a forced end starts nothing, and reports
// why, while an attempt of the previous generation runs. It does not repeat attempts that complete meanwhile.
func TestRetryAfterForcedEndWaitsForOldAttempts(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"deaf": {{Block: true, IgnoreKill: true}}, "polite": {{Block: true}, {}}})
	c.Start("n")
	t.Cleanup(func() { c.Fake.Release("deaf") })
	in := c.Input(`{name: forced, tasks: {
		deaf: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
		polite: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
		last: {type: shell, spec: {command: x}, dependsOn: [deaf, polite]}}}`)
	h := c.Submit(in)
	c.AwaitRunning("deaf")
	c.AwaitRunning("polite")
	terminateRun(h)
	again := generationAfterForce(h, in, 1)
	again.AwaitTask("polite", func(x *v1.Task) bool {
		return strings.Contains(x.GetError(), "waits for the old attempt of deaf on "+c.Name("n"))
	})
	// If a generation is ended by force while it waits, the next one waits instead.
	terminateRun(again)
	again = generationAfterForce(h, in, 2)
	again.AwaitTask("deaf", func(x *v1.Task) bool { return strings.Contains(x.GetError(), "waits for the old attempt of deaf on ") })
	if n := c.Calls(); n["deaf"] != 1 || n["polite"] != 1 {
		t.Errorf("while the old attempt runs there were %v", n)
	}
	c.Fake.Release("deaf")
	workertest.CheckRun(t, again.Wait(), "completed", map[string]string{"deaf": "completed", "polite": "completed", "last": "completed"})
	if n := c.Calls(); n["deaf"] != 1 || n["polite"] != 2 || n["last"] != 1 {
		t.Errorf("executions: %v", n)
	}
	workertest.Replay(t, "after-force", limits.Run{}, again.History(""))
}

// TestMutexOutlivesItsHolderThatWasEndedByForce checks that the mutex of a holder that was ended by force is granted
// only when the holder's attempt has ended.
func TestMutexOutlivesItsHolderThatWasEndedByForce(t *testing.T) {
	t.Parallel()
	y := workertest.Shared(t)
	c := y.Nodes(t, workertest.Script{"deaf": {{Block: true, IgnoreKill: true, Result: fake.Exit(1).Result}}})
	c.Start("n")
	t.Cleanup(func() { c.Fake.Release("deaf") })
	mutex := uniqueLock()
	holder := c.Submit(c.Input(fmt.Sprintf(`{name: holder, tasks: {deaf: {type: shell, spec: {command: x}, mutex: %s}}}`, mutex)))
	c.AwaitRunning("deaf")
	waiter := c.Submit(c.Input(fmt.Sprintf(`{name: waiter, tasks: {next: {type: shell, spec: {command: x}, mutex: %s}}}`, mutex)))
	waiter.AwaitTask("next", func(x *v1.Task) bool { return strings.Contains(x.GetError(), "waits for the lock "+mutex) })
	terminateRun(holder)
	workertest.Eventually(t, "the lock has looked at its holder several times", func() bool {
		if c.Calls()["next"] > 0 {
			t.Fatal("two hold the mutex")
		}
		return len(requestedLooks(t, y, mutex)) > 3
	})
	if c.Calls()["next"] > 0 {
		t.Error("two hold the mutex")
	}
	c.Fake.Release("deaf")
	workertest.CheckRun(t, waiter.Wait(), "completed", map[string]string{"next": "completed"})
}

// requestedLooks returns the IDs of the events in which the lock of a mutex recorded checks of its closed holder.
func requestedLooks(t *testing.T, y *workertest.Cluster, mutex string) (ids []int64) {
	t.Helper()
	closed := false
	events := y.Conn.GetWorkflowHistory(t.Context(), names.LockWorkflowID(names.TaskLock(mutex)), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		marker := event.GetMarkerRecordedEventAttributes()
		if marker == nil {
			continue
		}
		for _, p := range marker.GetDetails() {
			closed = closed || strings.Contains(p.String(), "ending")
		}
		if closed {
			ids = append(ids, event.GetEventId())
		}
	}
	return ids
}
