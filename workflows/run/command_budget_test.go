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

// TestTaskGetsOutputsOfManyParents checks a task whose parents have left more than one request can carry.
func TestTaskGetsOutputsOfManyParents(t *testing.T) {
	t.Parallel()
	const parents, size = 40, 40 << 10
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

// TestTerminatedChildrenDoNotBlockTheirRun checks that a run learns of the end of terminated partitions and child runs.
func TestTerminatedChildrenDoNotBlockTheirRun(t *testing.T) {
	t.Parallel()
	c, in := blockingChildren(t)
	zero := int32(0)
	for _, task := range in.GetDefinition().GetTasks() {
		task.Retry = &v1.RetryPolicy{MaxRetries: &zero}
	}
	h, _ := submitWithChildren(c, in)
	for _, child := range []*workertest.Handle{h.Partition(0, "each", 0), h.Partition(0, "each", 4), childRun(c, h.Status(&historyv1.StatusRequest{}).GetRun().GetTasks()["child"])} {
		terminate(child)
	}
	run := h.Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"each": "failed instances", "child": "failed child_run"})
	if each := run.GetTasks()["each"]; each.GetCounts()["lost"] != 8 || !strings.Contains(each.GetError(), "terminated") {
		t.Errorf("each: %v, %s", each.GetCounts(), each.GetError())
	}
}

// TestChildrenEndWithTerminatedRun checks that partitions and child runs end soon after their run is terminated or deleted.
func TestChildrenEndWithTerminatedRun(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(*workertest.Handle){"terminated": terminate, "deleted": (*workertest.Handle).Delete} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			h, _ := submitWithChildren(blockingChildren(t))
			end(h)
			workertest.Eventually(t, "nothing is left", func() bool { return countOpen(h) == 0 })
		})
	}
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
	y := workertest.SharedWithin(t, tightLimits)
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
		if n := mostBytesSent(h, execution); n > tightLimits.ScheduleBytes {
			t.Errorf("a workflow task has sent %d bytes of %d", n, tightLimits.ScheduleBytes)
		}
	}
}
