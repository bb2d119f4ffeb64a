package run_test

import (
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor/fake"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// TestLongManyChildrenWithLargeDefinitionsStart checks that children are started in several workflow tasks. Starting
// all of them in one would take 5 MB, and the server would terminate the run.
func TestLongManyChildrenWithLargeDefinitionsStart(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{})
	c.Start("n")
	large := fmt.Sprintf("context: {text: %s},", strings.Repeat("x", 58<<10))
	h := c.Submit(c.Input(fmt.Sprintf(`{name: wide, tasks: {
		each: {type: run, parallel: 80, concurrency: 80, spec: {definition: %s}}}}`, childDefinition(c, "inner", "a", large))))
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"each": "completed"})
	if n := c.Calls()["a"]; n != 80 {
		t.Errorf("%d of 80 children have run", n)
	}
}

// TestChildrenBeyondTheLimitWait checks that children beyond the limit wait in the run's own queue with a reason. The
// server blocks a run with 2,000 pending children.
func TestChildrenBeyondTheLimitWait(t *testing.T) {
	t.Parallel()
	const most = 5
	c := workertest.SharedWithin(t, limits.Run{Children: most}).Nodes(t, workertest.Script{"a": {{Block: true}}})
	c.Start("n")
	h := c.Submit(c.Input(fmt.Sprintf(`{name: many, tasks: {each: {type: run, parallel: 12, spec: {definition: %s}}}}`,
		childDefinition(c, "inner", "a", ""))))
	var task *v1.Task
	workertest.Eventually(t, "as many children run as may", func() bool {
		task = h.Status(&historyv1.StatusRequest{}).GetRun().GetTasks()["each"]
		return task.GetCounts()["running"] == most
	})
	if n := task.GetCounts()["queued"]; n != 12-most {
		t.Errorf("%d wait", n)
	}
	last := instancesPage(h, h.ID, &historyv1.InstancesRequest{Task: "each", From: 11}).GetInstances()[0]
	if !strings.Contains(last.GetError(), "child workflows") {
		t.Errorf("the last one waits because %q", last.GetError())
	}
	if n := countPendingChildren(h); n != most {
		t.Errorf("%d children are open", n)
	}
	c.Fake.Release("a")
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"each": "completed"})
}

func countPendingChildren(h *workertest.Handle) int {
	return len(describeRun(h).GetPendingChildren())
}

// TestCancelOfManyChildrenLeavesNoneOpen checks that a cancel in the middle leaves no workflow open.
func TestCancelOfManyChildrenLeavesNoneOpen(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, limits.Run{Children: 8, Instances: 5, PartitionInstances: 4})
	c := y.Nodes(t, workertest.Script{"a": {{Block: true}}, "each": {{Block: true}}})
	c.Start("n")
	h := c.Submit(c.Input(fmt.Sprintf(`{name: stopped, tasks: {
		runs: {type: run, parallel: 30, spec: {definition: %s}},
		each: {type: shell, spec: {command: x}, parallel: 60}}}`, childDefinition(c, "inner", "a", ""))))
	workertest.Eventually(t, "as many children are open as may", func() bool { return countPendingChildren(h) == 8 })
	h.Cancel(nil)
	workertest.CheckRun(t, h.Wait(), "cancelled", map[string]string{"runs": "cancelled", "each": "cancelled"})
	workertest.Eventually(t, "nothing is left", func() bool { return countOpen(h) == 0 })
}

// countOpen counts the open workflows of a run: itself, its partitions and its child runs.
func countOpen(h *workertest.Handle) int {
	h.T.Helper()
	query := fmt.Sprintf("ExecutionStatus = 'Running' AND (WorkflowId STARTS_WITH '%[1]s' OR %[2]s = '%[1]s')", h.ID, names.ParentAttribute)
	res, err := h.Conn.CountWorkflow(h.T.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	if err != nil {
		h.T.Fatal(err)
	}
	return int(res.GetCount())
}

// TestTaskGetsOutputsOfManyParents checks a task whose hundreds of parents have left more than one request can carry.
func TestTaskGetsOutputsOfManyParents(t *testing.T) { joinOfManyParents(t, 40, 40<<10) }

func TestLongTaskGetsOutputsOfManyParents(t *testing.T) {
	testneeds.Long(t)
	joinOfManyParents(t, 500, 4000)
}

// joinOfManyParents makes a task read the outputs of all its parents, each of the given size in bytes.
func joinOfManyParents(t *testing.T, parents, size int) {
	t.Parallel()
	s := workertest.Script{}
	def := &v1.Definition{Name: "join", Tasks: map[string]*v1.TaskDefinition{}}
	var all []string
	for i := range parents {
		name := fmt.Sprintf("p%03d", i)
		all = append(all, name)
		def.Tasks[name] = workertest.ShellTask()
		s[name] = []fake.Step{{Output: "text=" + strings.Repeat("y", size)}}
	}
	join := workertest.ShellTask(all...)
	join.Env = map[string]string{"N": fmt.Sprintf("${{ size(parent.p%03d.output.text) + size(parent.p000.output.text) }}", parents-1)}
	def.Tasks["join"] = join
	c := workertest.Shared(t).Nodes(t, s)
	c.Start("n")
	workertest.CheckRun(t, c.Submit(c.InputOf(def)).Wait(), "completed", map[string]string{"join": "completed"})
	for _, call := range c.Fake.Calls() {
		if call.Task == "join" && call.Attempt.Env["N"] != fmt.Sprint(2*size) {
			t.Errorf("environment of the join: %v", call.Attempt.Env)
		}
	}
}

// TestTerminatedPartitionDoesNotBlockItsRun checks that a terminated partition does not block its run, whichever
// execution of the run started it.
func TestTerminatedPartitionDoesNotBlockItsRun(t *testing.T) {
	t.Parallel()
	limits := limits.Run{Instances: 5, PartitionInstances: 4, HistoryEvents: 60}
	c := workertest.SharedWithin(t, limits).Nodes(t, workertest.Script{"each": {{Block: true}}})
	c.Start("n")
	document := `{name: cut, tasks: {each: {type: shell, spec: {command: x}, parallel: 8, retry: {maxRetries: 0}}`
	for i := range 16 {
		document += fmt.Sprintf(", t%d: {type: shell, spec: {command: x}", i)
		if i > 0 {
			document += fmt.Sprintf(", dependsOn: [t%d]", i-1)
		}
		document += "}"
	}
	h := c.Submit(c.Input(document + "}}"))
	h.AwaitTask("t15", func(task *v1.Task) bool { return task.GetState() == "completed" })
	workertest.Eventually(t, "the run is in another execution", func() bool { return len(executionsOf(h)) > 1 })
	for _, from := range []int{0, 4} {
		if err := c.Conn.TerminateWorkflow(t.Context(), h.Partition(0, "each", from).ID, "", "by the test"); err != nil {
			t.Fatal(err)
		}
	}
	run := h.Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"each": "failed instances"})
	if got := run.GetTasks()["each"]; got.GetCounts()["lost"] != 8 || !strings.Contains(got.GetError(), "terminated") {
		t.Errorf("each: %v, %s", got.GetCounts(), got.GetError())
	}
}

// TestChildrenEndWithTerminatedRun checks that partitions and child runs end soon after their run is terminated or
// deleted.
func TestChildrenEndWithTerminatedRun(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(*workertest.Handle) error{
		"terminated": func(h *workertest.Handle) error {
			return h.Conn.TerminateWorkflow(h.T.Context(), h.ID, "", "by the test")
		},
		"deleted": func(h *workertest.Handle) error {
			h.Delete()
			return nil
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			checkChildrenEnd(t, end)
		})
	}
}

func checkChildrenEnd(t *testing.T, end func(*workertest.Handle) error) {
	y := workertest.SharedWithin(t, inPartitions)
	c := y.Nodes(t, workertest.Script{"each": {{Block: true}}, "a": {{Block: true}}})
	c.Start("n")
	h := c.Submit(c.Input(fmt.Sprintf(`{name: gone, tasks: {each: {type: shell, spec: {command: x}, parallel: 8},
		child: {type: run, spec: {definition: %s}}}}`, childDefinition(c, "inner", "a", ""))))
	c.AwaitRunning("each")
	c.AwaitRunning("a")
	if err := end(h); err != nil {
		t.Fatal(err)
	}
	workertest.Eventually(t, "nothing is left", func() bool { return countOpen(h) == 0 })
}

// mostBytesSent returns the most bytes that one workflow task of an execution has sent, according to its history.
func mostBytesSent(h *workertest.Handle, execution string) int {
	h.T.Helper()
	tasks, most := map[int64]int{}, 0
	for _, e := range h.History(execution) {
		attributes := e.ProtoReflect().WhichOneof(e.ProtoReflect().Descriptor().Oneofs().ByName("attributes"))
		of := e.ProtoReflect().Get(attributes).Message()
		field := of.Descriptor().Fields().ByName("workflow_task_completed_event_id")
		if field == nil {
			continue
		}
		task := of.Get(field).Int()
		tasks[task] += proto.Size(e)
		most = max(most, tasks[task])
	}
	return most
}

// TestWorkflowTasksKeepToTheirBudget checks that no workflow task sends more than its budget, whatever its commands
// are: requests with large environments, results of local activities, or the final status.
func TestWorkflowTasksKeepToTheirBudget(t *testing.T) {
	t.Parallel()
	limits := limits.Run{ScheduleBytes: 128 << 10}
	y := workertest.SharedWithin(t, limits)
	large := strings.Repeat("x", 3000)
	c := y.Nodes(t, workertest.Script{"first": {{Output: fmt.Sprintf(`{"list": [%q, %q, "c"]}`, large, large)}}})
	c.Start("n")
	def := &v1.Definition{Name: "budget", Tasks: map[string]*v1.TaskDefinition{"first": workertest.ShellTask()}}
	for i := range 30 {
		task := workertest.ShellTask()
		task.Env = map[string]string{"LARGE": strings.Repeat("\"", 2<<10)}
		def.Tasks[fmt.Sprintf("env-%d", i)] = task
		each := workertest.ShellTask("first")
		each.Foreach = structpb.NewStringValue(fmt.Sprintf("first.list.map(x, x + '%d')", i))
		def.Tasks[fmt.Sprintf("each-%d", i)] = each
		asked := &v1.TaskDefinition{Type: "approval", DependsOn: []string{"first"}, Spec: workertest.StructOf(map[string]any{"message": "${{ first.list[0] }}"})}
		def.Tasks[fmt.Sprintf("asked-%d", i)] = asked
		asked.Deadline, asked.ContinueOnError = "2s", true
		cached := workertest.ShellTask()
		cached.Cache = &v1.Cache{Key: fmt.Sprintf("'%s%d'", c.Label, i)}
		def.Tasks[fmt.Sprintf("cached-%d", i)] = cached
	}
	h := c.Submit(c.InputOf(def))
	workertest.CheckRun(t, h.Wait(), "completed", nil)
	for _, execution := range executionsOf(h) {
		if n := mostBytesSent(h, execution); n > limits.ScheduleBytes {
			t.Errorf("a workflow task has sent %d bytes of %d", n, limits.ScheduleBytes)
		}
	}
}
