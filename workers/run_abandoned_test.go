package workers

import (
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"switchyard/activities/executor/fake"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// terminate closes the run from outside and stores its last status, as `cancel --force` does.
func (h *handle) terminate() {
	h.t.Helper()
	status := h.status(&v1.StatusRequest{})
	status.Run.State, status.Run.Reason = v1.RunFailed, v1.ReasonTerminated
	if err := h.conn.TerminateWorkflow(h.t.Context(), h.id, "", "ended by force"); err != nil {
		h.t.Fatal(err)
	}
	if err := h.store.PutMessage(h.t.Context(), storekey.Status(h.home(), status.GetRun().GetGeneration()), status); err != nil {
		h.t.Fatal(err)
	}
}

// afterForce starts the next generation of a run that was closed from outside.
func (h *handle) afterForce(in *v1.RunInput, generation int32) *handle {
	h.t.Helper()
	in = &v1.RunInput{
		Definition: in.GetDefinition(), References: in.GetReferences(), Options: in.GetOptions(), Generation: generation, Rerun: &v1.Rerun{Failed: true}, Chain: h.chain,
		Terminated: describe(h.t, h.conn, h.id, "").GetWorkflowExecutionInfo().GetExecution().GetRunId(),
	}
	run, err := h.conn.ExecuteWorkflow(h.t.Context(), client.StartWorkflowOptions{
		ID: h.id, TaskQueue: names.ControlQueue, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}, names.RunWorkflow, in)
	if err != nil {
		h.t.Fatal(err)
	}
	return &handle{workerSet: h.workerSet, id: h.id, run: run, chain: h.chain}
}

// TestRetryAfterForceWaitsForTheOldAttempts checks that the generation after a forced end starts nothing, and reports
// why, while an attempt of the previous generation runs. It does not repeat attempts that complete meanwhile.
func TestRetryAfterForceWaitsForTheOldAttempts(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"deaf": {{Block: true, IgnoreKill: true}}, "polite": {{Block: true}, {}}})
	c.start("n")
	t.Cleanup(func() { c.fake.Release("deaf") })
	in := c.input(`{name: forced, tasks: {
		deaf: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
		polite: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
		last: {type: shell, spec: {command: x}, dependsOn: [deaf, polite]}}}`)
	h := c.submit(in)
	c.running("deaf")
	c.running("polite")
	h.terminate()
	again := h.afterForce(in, 1)
	again.until("polite", func(x *v1.Task) bool {
		return strings.Contains(x.GetError(), "waits for the old attempt of deaf on "+c.name("n"))
	})
	// If a generation is ended by force while it waits, the next one waits instead.
	again.terminate()
	again = h.afterForce(in, 2)
	again.until("deaf", func(x *v1.Task) bool { return strings.Contains(x.GetError(), "waits for the old attempt of deaf on ") })
	if n := c.calls(); n["deaf"] != 1 || n["polite"] != 1 {
		t.Errorf("while the old attempt runs there were %v", n)
	}
	c.fake.Release("deaf")
	want(t, again.wait(), "completed", map[string]string{"deaf": "completed", "polite": "completed", "last": "completed"})
	if n := c.calls(); n["deaf"] != 1 || n["polite"] != 2 || n["last"] != 1 {
		t.Errorf("executions: %v", n)
	}
	replay(t, "after-force", limits.Run{}, again.history(""))
}

// TestMutexOutlivesItsHolderThatWasEndedByForce checks that the mutex of a holder that was ended by force is granted
// only when the holder's attempt has ended.
func TestMutexOutlivesItsHolderThatWasEndedByForce(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{locker: quickLocker})
	c := y.workers(t, script{"deaf": {{Block: true, IgnoreKill: true, Result: fake.Exit(1).Result}}})
	c.start("n")
	t.Cleanup(func() { c.fake.Release("deaf") })
	holder := c.submit(c.input(`{name: holder, tasks: {deaf: {type: shell, spec: {command: x}, mutex: m}}}`))
	c.running("deaf")
	waiter := c.submit(c.input(`{name: waiter, tasks: {next: {type: shell, spec: {command: x}, mutex: m}}}`))
	waiter.until("next", func(x *v1.Task) bool { return strings.Contains(x.GetError(), "waits for the lock m") })
	holder.terminate()
	eventually(t, "the lock has looked at its holder several times", func() bool {
		if c.calls()["next"] > 0 {
			t.Fatal("two hold the mutex")
		}
		return len(looks(t, y)) > 3
	})
	if c.calls()["next"] > 0 {
		t.Error("two hold the mutex")
	}
	c.fake.Release("deaf")
	want(t, waiter.wait(), "completed", map[string]string{"next": "completed"})
}

// looks returns the IDs of the events in which the lock m recorded checks of its closed holder.
func looks(t *testing.T, y *cluster) (ids []int64) {
	t.Helper()
	closed := false
	events := y.conn.GetWorkflowHistory(t.Context(), names.LockWorkflowID(names.TaskLock("m")), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
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
