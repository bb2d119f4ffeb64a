package workers_test

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/client"

	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// metadataQuery is the query with which every workflow of the SDK lists its handlers.
const metadataQuery = "__temporal_workflow_metadata"

// interactions holds the names of the signals, updates and queries that workflows handle.
type interactions struct{ signals, updates, queries map[string]bool }

// collect adds the handlers that a workflow reports, so that no test has to list them.
func (n *interactions) collect(c *workertest.Nodes, id string) {
	c.T.Helper()
	definition := metadataOf(c, id).GetDefinition()
	for _, list := range []struct {
		names map[string]bool
		from  []*sdk.WorkflowInteractionDefinition
	}{
		{n.signals, definition.GetSignalDefinitions()},
		{n.updates, definition.GetUpdateDefinitions()},
		{n.queries, definition.GetQueryDefinitions()},
	} {
		for _, d := range list.from {
			if !strings.HasPrefix(d.GetName(), "__") {
				list.names[d.GetName()] = true
			}
		}
	}
}

func metadataOf(c *workertest.Nodes, id string) *sdk.WorkflowMetadata {
	c.T.Helper()
	var m sdk.WorkflowMetadata
	workertest.Eventually(c.T, "workflow "+id+" says what it takes", func() bool {
		value, err := c.Conn.QueryWorkflow(c.T.Context(), id, "", metadataQuery)
		return err == nil && value.Get(&m) == nil
	})
	return &m
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// TestWorkflowsSurviveStrayMessages sends every signal, update and query with payloads of every wrong type to every
// workflow. Each workflow still answers queries afterwards, and runs end normally.
func TestWorkflowsSurviveStrayMessages(t *testing.T) { surviveStrayMessages(t, 1) }

func TestLongWorkflowsSurviveStrayMessages(t *testing.T) {
	testneeds.Long(t)
	surviveStrayMessages(t, 6)
}

// surviveStrayMessages sends each workflow the given number of rounds of messages.
func surviveStrayMessages(t *testing.T, rounds int) {
	t.Parallel()
	limits := limits.Run{Instances: 5, PartitionInstances: 4}
	c := workertest.SharedWithin(t, limits).Nodes(t, workertest.Script{"each": {{Block: true}}, "a": {{Block: true}}})
	node := names.NodeWorkflowID(c.Name("n"))
	c.Start("n")
	fan := c.Submit(c.Input(`{name: odd, tasks: {each: {type: shell, spec: {command: x}, parallel: 8}}}`))
	locked := c.Submit(c.Input(`{name: locked, tasks: {a: {type: shell, spec: {command: x}, mutex: odd},
		b: {type: shell, spec: {command: x}, mutex: odd}}}`))
	c.AwaitRunning("each")
	c.AwaitRunning("a")
	part := fan.Partition(0, "each", 0).ID
	all := []string{fan.ID, part, locked.ID, node, names.LockWorkflowID(names.TaskLock("odd")), names.LeaderWorkflowID}

	taken := interactions{map[string]bool{"unknown": true}, map[string]bool{"unknown": true}, map[string]bool{"unknown": true}}
	for _, id := range all {
		taken.collect(c, id)
	}
	if !taken.signals[names.AskSignal] || !taken.updates[names.KillTaskUpdate] || !taken.updates[names.DrainUpdate] || !taken.queries[names.EventsQuery] {
		t.Fatalf("the workflows say that they take only %v", taken)
	}
	strays := map[string][]strayPayload{}
	for _, list := range []map[string]bool{taken.signals, taken.updates, taken.queries} {
		for name := range list {
			strays[name] = nil
		}
	}
	for _, name := range sortedKeys(strays) {
		strays[name] = drawStrayPayloads(t, name)
	}
	var senders sync.WaitGroup
	for k, id := range all {
		senders.Go(func() {
			sendStrays(c, id, &taken, func(string) strayPayload { return invalidText })
			for i := range rounds {
				sendStrays(c, id, &taken, func(name string) strayPayload {
					list := strays[name]
					return list[(k*rounds+i)%len(list)]
				})
			}
		})
	}
	senders.Wait()

	// Undo messages that took effect: a message without a field pauses a run or drains a node.
	for _, id := range []string{fan.ID, part, locked.ID} {
		if err := sendUpdate(c, id, names.ResumeUpdate, &historyv1.RunCommand{}); err != nil && !strings.Contains(err.Error(), "is not paused") {
			t.Error(err)
		}
	}
	if err := sendUpdate(c, node, names.UndrainUpdate, nil); err != nil {
		t.Error(err)
	}
	for _, id := range all {
		metadataOf(c, id)
	}
	for _, h := range []*workertest.Handle{fan, locked} {
		workertest.Eventually(t, "the run can be queried", func() bool { return h.Status(&historyv1.StatusRequest{}).GetRun().GetState() == "running" })
	}
	c.Fake.Release("each")
	c.Fake.Release("a")
	workertest.CheckRun(t, fan.Wait(), "completed", map[string]string{"each": "completed"})
	workertest.CheckRun(t, locked.Wait(), "completed", map[string]string{"a": "completed", "b": "completed"})
	for _, id := range all {
		checkNoTaskFailed(c, id)
	}
}

// sendStrays sends a workflow every signal but `cancel`, every update and every query, each with a payload of its own.
func sendStrays(c *workertest.Nodes, id string, taken *interactions, payload func(name string) strayPayload) {
	for _, name := range sortedKeys(taken.signals) {
		if runs := id != names.LeaderWorkflowID && !strings.Contains(id, ":"); name == names.CancelSignal && runs {
			continue // TestCancelTakesAnyPayload covers it
		}
		if err := c.Conn.SignalWorkflow(c.T.Context(), id, "", name, payload(name).raw()); err != nil {
			c.T.Errorf("signal %s to %s: %v", name, id, err)
		}
	}
	for _, name := range sortedKeys(taken.updates) {
		p := payload(name)
		readsNone := name == names.UndrainUpdate
		if err := sendUpdate(c, id, name, p.raw()); err == nil && !p.isMessage && !readsNone {
			c.T.Errorf("%s of %s takes %v", name, id, p)
		}
	}
	for _, name := range sortedKeys(taken.queries) {
		_, _ = c.Conn.QueryWorkflow(c.T.Context(), id, "", name, payload(name).raw())
	}
}

// TestCancelTakesAnyPayload cancels runs with payloads of every type. Objects that are no commands are refused.
func TestCancelTakesAnyPayload(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Block: true}}})
	c.Start("n")
	var runs []*workertest.Handle
	for _, p := range drawStrayPayloads(t, names.CancelSignal) {
		h := c.Submit(c.Input(`{name: odd, tasks: {a: {type: shell, spec: {command: x}}}}`))
		h.Cancel(p.raw())
		if bytes.HasPrefix(p.GetData(), []byte("{")) {
			h.Cancel(nil)
		}
		runs = append(runs, h)
	}
	for _, h := range runs {
		workertest.CheckRun(t, h.Wait(), "cancelled", map[string]string{"a": "cancelled"})
		checkNoTaskFailed(c, h.ID)
	}
}

// TestExplainEndsWhateverItIsSent signals Explain with payloads of every type.
func TestExplainEndsWhateverItIsSent(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{})
	proper := &historyv1.ExplainRequest{RunId: "odd", Request: &historyv1.TaskRequest{Task: "a", Type: "shell"}}
	for _, stray := range drawStrayPayloads(t, names.ExplainWorkflow) {
		id := names.NewExplainID("odd")
		run, err := c.Conn.SignalWithStartWorkflow(t.Context(), id, "unknown", stray.raw(),
			client.StartWorkflowOptions{TaskQueue: names.ControlQueue}, names.ExplainWorkflow, proper)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), workertest.Limit)
		err = run.Get(ctx, &historyv1.ExplainResponse{})
		cancel()
		if err != nil {
			t.Errorf("Explain that was sent %v ends with %v", stray, err)
		}
		checkNoTaskFailed(c, id)
	}
}

// TestWorkflowsFailWithInvalidText starts every workflow with an input that is not valid UTF-8.
func TestWorkflowsFailWithInvalidText(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	for name, queue := range map[string]string{
		names.RunWorkflow: names.ControlQueue, names.FanOutWorkflow: names.ControlQueue, names.LockWorkflow: names.ControlQueue,
		names.ExplainWorkflow: names.ControlQueue, names.NodeWorkflow: names.ElectionQueue, names.LeaderWorkflow: names.ElectionQueue,
	} {
		options := client.StartWorkflowOptions{ID: names.NewRunID("invalid"), TaskQueue: queue}
		run, err := c.Conn.ExecuteWorkflow(t.Context(), options, name, invalidText.raw())
		if err != nil {
			t.Fatal(err)
		}
		h := &workertest.Handle{Nodes: c, ID: run.GetID()}
		if !h.AwaitEnd() {
			t.Errorf("%s is still open%s", name, h.Fault())
		}
		checkNoTaskFailed(c, h.ID)
	}
}

// checkNoTaskFailed checks that no workflow task of an execution has failed.
func checkNoTaskFailed(c *workertest.Nodes, id string) {
	c.T.Helper()
	for _, e := range (&workertest.Handle{Nodes: c, ID: id}).History("") {
		failed := e.GetWorkflowTaskFailedEventAttributes()
		if failed != nil && failed.GetCause() != enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND { // a signal arrived while it closed
			c.T.Errorf("a workflow task of %s failed: %v", id, e)
		}
	}
}

// sendUpdate sends an update and returns its result.
func sendUpdate(c *workertest.Nodes, id, name string, arg any) error {
	ctx, cancel := context.WithTimeout(c.T.Context(), time.Minute)
	defer cancel()
	update, err := c.Conn.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: name, Args: []any{arg}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = update.Get(ctx, nil)
	}
	return err
}
