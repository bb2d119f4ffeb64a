package run_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
)

// TestLargeFanOutLooksLikeAnyOther checks that a large fan-out, which children of the run carry, looks like any other
// from outside.
func TestLargeFanOutLooksLikeAnyOther(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, inPartitions)
	c := y.Nodes(t, workertest.Script{
		"discover": {{Output: `{"files": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]}`, ContextUpdate: "listed=1"}},
		"each":     {{Output: "done=1", ContextUpdate: "seen=1"}},
		"plain":    {{}},
	})
	c.Start("n")
	h := c.Submit(c.Input(`{name: large, maxParallel: 20, tasks: {
		discover: {type: shell, spec: {command: x}},
		each: {type: shell, dependsOn: [discover], foreach: "discover.files", env: {WHAT: "${{ input.item }} ${{ parent.discover.exitCode }} ${{ workflow.context.listed }}"}, spec: {command: x}},
		plain: {type: shell, parallel: 6, batch: 2, spec: {command: x}},
		after: {type: shell, dependsOn: [each, plain], spec: {command: x},
			condition: "parent.each.count == 10 && parent.each.outputs.all(o, o.done == '1') && parent.plain.completed == 6 && parent.plain.exitCode == 0 && workflow.context.seen == '1'"}}}`))
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"each": "completed", "plain": "completed", "after": "completed"})
	each := run.Tasks["each"]
	if each.GetCount() != 10 || fmt.Sprint(each.GetCounts()) != "map[completed:10]" || len(each.GetInstances()) != 0 {
		t.Errorf("each: %v", each)
	}
	if got := fmt.Sprint(valuesSeen(c, "each", "WHAT")); got != "[a 0 1 b 0 1 c 0 1 d 0 1 e 0 1 f 0 1 g 0 1 h 0 1 i 0 1 j 0 1]" {
		t.Errorf("instances saw %s", got)
	}
	number, child := int32(0), ""
	for number < 10 {
		res := instancesPage(h, h.ID, &historyv1.InstancesRequest{Task: "each", From: number})
		child = res.GetChild()
		for _, i := range instancesPage(h, child, &historyv1.InstancesRequest{Task: "each", From: number}).GetInstances() {
			if i.GetIndex() != number || i.GetState() != "completed" || i.GetNode() == "" {
				t.Fatalf("instance %d: %v", number, i)
			}
			number++
		}
	}
	workertest.Replay(t, "parts", inPartitions, h.History(""))
	workertest.Replay(t, "part", inPartitions, (&workertest.Handle{Nodes: c, ID: child}).History(""))
}

// TestPartitionsOutliveExecutionsOfTheirRun checks that run and partitions continue as new, and that partitions outlive
// executions of the run.
func TestPartitionsOutliveExecutionsOfTheirRun(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, shortHistory)
	var each []fake.Step
	for i := range 40 {
		each = append(each, fake.Step{Duration: 30 * time.Millisecond, Output: "n=1", ContextUpdate: fmt.Sprintf("k%02d=1", i)})
	}
	c := y.Nodes(t, workertest.Script{"each": each})
	c.Start("n")
	def := chainBeside(12, map[string]*v1.TaskDefinition{"each": workertest.ShellTask(), "after": workertest.ShellTask("each")})
	def.Tasks["each"].Parallel, def.Tasks["each"].Concurrency = structpb.NewNumberValue(40), 4
	def.Tasks["after"].Condition = "size(parent.each.outputs) == 40 && parent.each.outputs.all(o, o.n == '1')"
	h := c.Submit(c.InputOf(def))
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"each": "completed", "after": "completed"})
	child := h.Partition(0, "each", 0)
	if n := len(run.GetContext().GetFields()); n != 40 {
		t.Errorf("the context of the run has %d keys", n)
	}
	if n := c.Calls()["each"]; n != 40 || len(executionsOf(h)) < 2 || len(executionsOf(child)) < 2 {
		t.Errorf("%d calls, %d executions of the run and %d of a part", n, len(executionsOf(h)), len(executionsOf(child)))
	}
}
