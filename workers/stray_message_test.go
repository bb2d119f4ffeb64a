package workers

import (
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
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// metadataQuery is the query with which every workflow of the SDK lists its handlers.
const metadataQuery = "__temporal_workflow_metadata"

// interactions holds the names of the signals, updates and queries that workflows handle.
type interactions struct{ signals, updates, queries map[string]bool }

// collect adds the handlers that a workflow reports, so that no test has to list them.
func (n *interactions) collect(c *workerSet, id string) {
	c.t.Helper()
	definition := c.metadata(id).GetDefinition()
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

func (c *workerSet) metadata(id string) *sdk.WorkflowMetadata {
	c.t.Helper()
	var m sdk.WorkflowMetadata
	eventually(c.t, "workflow "+id+" says what it takes", func() bool {
		value, err := c.conn.QueryWorkflow(c.t.Context(), id, "", metadataQuery)
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
	c := own(t, ControlConfig{limits: limits}).workers(t, script{"each": {{Block: true}}, "a": {{Block: true}}})
	node := names.NodeWorkflowID(c.start("n").cfg.Name)
	fan := c.submit(c.input(`{name: odd, tasks: {each: {type: shell, spec: {command: x}, parallel: 8}}}`))
	locked := c.submit(c.input(`{name: locked, tasks: {a: {type: shell, spec: {command: x}, mutex: odd},
		b: {type: shell, spec: {command: x}, mutex: odd}}}`))
	c.running("each")
	c.running("a")
	part := fan.child(0, "each", 0).id
	all := []string{fan.id, part, locked.id, node, names.LockWorkflowID(names.TaskLock("odd")), names.LeaderWorkflowID}

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
			c.sendStrays(id, &taken, func(string) strayPayload { return invalidText })
			for i := range rounds {
				c.sendStrays(id, &taken, func(name string) strayPayload {
					list := strays[name]
					return list[(k*rounds+i)%len(list)]
				})
			}
		})
	}
	senders.Wait()

	// Undo messages that took effect: a message without a field pauses a run or drains a node.
	for _, id := range []string{fan.id, part, locked.id} {
		if err := c.updateBy(id, names.ResumeUpdate, &v1.RunCommand{}); err != nil && !strings.Contains(err.Error(), "is not paused") {
			t.Error(err)
		}
	}
	if err := c.updateBy(node, names.UndrainUpdate, nil); err != nil {
		t.Error(err)
	}
	for _, id := range all {
		c.metadata(id)
	}
	for _, h := range []*handle{fan, locked} {
		eventually(t, "the run can be queried", func() bool { return h.status(&v1.StatusRequest{}).GetRun().GetState() == "running" })
	}
	c.fake.Release("each")
	c.fake.Release("a")
	want(t, fan.wait(), "completed", map[string]string{"each": "completed"})
	want(t, locked.wait(), "completed", map[string]string{"a": "completed", "b": "completed"})
	for _, id := range all {
		c.checkNoTaskFailed(id)
	}
}

// sendStrays sends a workflow every signal but `cancel`, every update and every query, each with a payload of its own.
func (c *workerSet) sendStrays(id string, taken *interactions, payload func(name string) strayPayload) {
	for _, name := range sortedKeys(taken.signals) {
		if runs := id != names.LeaderWorkflowID && !strings.Contains(id, ":"); name == names.CancelSignal && runs {
			continue // TestCancelTakesAnyPayload covers it
		}
		if err := c.conn.SignalWorkflow(c.t.Context(), id, "", name, payload(name).raw()); err != nil {
			c.t.Errorf("signal %s to %s: %v", name, id, err)
		}
	}
	for _, name := range sortedKeys(taken.updates) {
		p := payload(name)
		readsNone := name == names.UndrainUpdate
		if err := c.updateBy(id, name, p.raw()); err == nil && !p.isMessage && !readsNone {
			c.t.Errorf("%s of %s takes %v", name, id, p)
		}
	}
	for _, name := range sortedKeys(taken.queries) {
		_, _ = c.conn.QueryWorkflow(c.t.Context(), id, "", name, payload(name).raw())
	}
}

// TestCancelTakesAnyPayload cancels runs with payloads of every type.
func TestCancelTakesAnyPayload(t *testing.T) {
	t.Parallel()
	c := own(t, ControlConfig{}).workers(t, script{"a": {{Block: true}}})
	c.start("n")
	var runs []*handle
	for _, p := range drawStrayPayloads(t, names.CancelSignal) {
		h := c.submit(c.input(`{name: odd, tasks: {a: {type: shell, spec: {command: x}}}}`))
		h.signal(p.raw())
		runs = append(runs, h)
	}
	for _, h := range runs {
		want(t, h.wait(), "cancelled", map[string]string{"a": "cancelled"})
		c.checkNoTaskFailed(h.id)
	}
}

// TestExplainEndsWhateverItIsSent signals Explain with payloads of every type.
func TestExplainEndsWhateverItIsSent(t *testing.T) {
	t.Parallel()
	c := own(t, ControlConfig{}).workers(t, script{})
	proper := &v1.ExplainRequest{RunId: "odd", Request: &v1.TaskRequest{Task: "a", Type: "shell"}}
	for _, stray := range drawStrayPayloads(t, names.ExplainWorkflow) {
		id := names.NewExplainID("odd")
		run, err := c.conn.SignalWithStartWorkflow(t.Context(), id, "unknown", stray.raw(),
			client.StartWorkflowOptions{TaskQueue: names.ControlQueue}, names.ExplainWorkflow, proper)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		err = run.Get(ctx, &v1.ExplainResponse{})
		cancel()
		if err != nil {
			t.Errorf("Explain that was sent %v ends with %v", stray, err)
		}
		c.checkNoTaskFailed(id)
	}
}

// TestWorkflowsFailWithInvalidText starts every workflow with an input that is not valid UTF-8.
func TestWorkflowsFailWithInvalidText(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	for name, queue := range map[string]string{
		names.RunWorkflow: names.ControlQueue, names.FanOutWorkflow: names.ControlQueue, names.LockWorkflow: names.ControlQueue,
		names.ExplainWorkflow: names.ControlQueue, names.NodeWorkflow: names.ElectionQueue, names.LeaderWorkflow: names.ElectionQueue,
	} {
		options := client.StartWorkflowOptions{ID: names.NewRunID("invalid"), TaskQueue: queue}
		run, err := c.conn.ExecuteWorkflow(t.Context(), options, name, invalidText.raw())
		if err != nil {
			t.Fatal(err)
		}
		h := &handle{workerSet: c, id: run.GetID()}
		if !h.closed() {
			t.Errorf("%s is still open%s", name, h.fault())
		}
		c.checkNoTaskFailed(h.id)
	}
}

// checkNoTaskFailed checks that no workflow task of an execution has failed.
func (c *workerSet) checkNoTaskFailed(id string) {
	c.t.Helper()
	for _, e := range (&handle{workerSet: c, id: id}).history("") {
		failed := e.GetWorkflowTaskFailedEventAttributes()
		if failed != nil && failed.GetCause() != enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND { // a signal arrived while it closed
			c.t.Errorf("a workflow task of %s failed: %v", id, e)
		}
	}
}

// updateBy sends an update and returns its result.
func (c *workerSet) updateBy(id, name string, arg any) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	update, err := c.conn.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: name, Args: []any{arg}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = update.Get(ctx, nil)
	}
	return err
}
