package workers

import (
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor/fake"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// TestLongManyChildrenWithLargeDefinitions checks that children are started in several workflow tasks. Starting all of
// them in one would take 5 MB, and the server would terminate the run.
func TestLongManyChildrenWithLargeDefinitions(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	c := own(t, ControlConfig{}).workers(t, script{})
	c.start("n")
	large := fmt.Sprintf("context: {text: %s},", strings.Repeat("x", 58<<10))
	h := c.submit(c.input(fmt.Sprintf(`{name: wide, tasks: {
		each: {type: run, parallel: 80, concurrency: 80, spec: {definition: %s}}}}`, c.childDefinition("inner", "a", large))))
	want(t, h.wait(), "completed", map[string]string{"each": "completed"})
	if n := c.calls()["a"]; n != 80 {
		t.Errorf("%d of 80 children have run", n)
	}
}

// TestChildrenBeyondTheLimitWait checks that children beyond the limit wait in the run's own queue with a reason. The
// server blocks a run with 2,000 pending children.
func TestChildrenBeyondTheLimitWait(t *testing.T) {
	t.Parallel()
	const most = 5
	c := own(t, ControlConfig{limits: limits.Run{Children: most}}).workers(t, script{"a": {{Block: true}}})
	c.start("n")
	h := c.submit(c.input(fmt.Sprintf(`{name: many, tasks: {each: {type: run, parallel: 40, spec: {definition: %s}}}}`,
		c.childDefinition("inner", "a", ""))))
	var task *v1.Task
	eventually(t, "as many children run as may", func() bool {
		task = h.status(&v1.StatusRequest{}).GetRun().GetTasks()["each"]
		return task.GetCounts()["running"] == most
	})
	if n := task.GetCounts()["queued"]; n != 40-most {
		t.Errorf("%d wait", n)
	}
	last := h.page(h.id, &v1.InstancesRequest{Task: "each", From: 39}).GetInstances()[0]
	if !strings.Contains(last.GetError(), "child workflows") {
		t.Errorf("the last one waits because %q", last.GetError())
	}
	if n := h.pendingChildren(); n != most {
		t.Errorf("%d children are open", n)
	}
	c.fake.Release("a")
	want(t, h.wait(), "completed", map[string]string{"each": "completed"})
}

func (h *handle) pendingChildren() int {
	return len(h.described().GetPendingChildren())
}

// TestCancelOfManyChildrenLeavesNothing checks that a cancel in the middle leaves no workflow open.
func TestCancelOfManyChildrenLeavesNothing(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: limits.Run{Children: 8, Instances: 5, PartitionInstances: 4}})
	c := y.workers(t, script{"a": {{Block: true}}, "each": {{Block: true}}})
	c.start("n")
	h := c.submit(c.input(fmt.Sprintf(`{name: stopped, tasks: {
		runs: {type: run, parallel: 30, spec: {definition: %s}},
		each: {type: shell, spec: {command: x}, parallel: 60}}}`, c.childDefinition("inner", "a", ""))))
	eventually(t, "as many children are open as may", func() bool { return h.pendingChildren() == 8 })
	h.signal(nil)
	want(t, h.wait(), "cancelled", map[string]string{"runs": "cancelled", "each": "cancelled"})
	eventually(t, "nothing is left", func() bool { return y.openWorkflows(t, names.RunWorkflow, names.FanOutWorkflow) == 0 })
}

// openWorkflows counts the open workflows of some types.
func (y *cluster) openWorkflows(t *testing.T, types ...string) int {
	t.Helper()
	query := fmt.Sprintf("ExecutionStatus = 'Running' AND WorkflowType IN ('%s')", strings.Join(types, "', '"))
	res, err := y.conn.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	if err != nil {
		t.Fatal(err)
	}
	return int(res.GetCount())
}

// TestManyLargeFanOutsAtOnce checks that many large fan-outs share the child workflows of their run.
func TestManyLargeFanOutsAtOnce(t *testing.T) { manyLargeFanOutsAtOnce(t, 8) }

func TestLongManyLargeFanOutsAtOnce(t *testing.T) {
	testneeds.Long(t)
	manyLargeFanOutsAtOnce(t, 30)
}

func manyLargeFanOutsAtOnce(t *testing.T, fans int) {
	t.Parallel()
	c := own(t, ControlConfig{limits: limits.Run{Children: 7, Instances: 2, PartitionInstances: 2}}).workers(t, script{})
	c.start("n")
	def := &v1.Definition{Name: "fans", Tasks: map[string]*v1.TaskDefinition{}}
	for i := range fans {
		task := shellTask()
		task.Parallel = structpb.NewNumberValue(6)
		def.Tasks[fmt.Sprintf("t%02d", i)] = task
	}
	run := c.submit(c.inputOf(def)).wait()
	want(t, run, "completed", nil)
	for name, task := range run.GetTasks() {
		if task.GetCounts()["completed"] != 6 || c.calls()[name] != 6 {
			t.Errorf("%s: %v, %d executions", name, task.GetCounts(), c.calls()[name])
		}
	}
}

// TestJoinOfManyParentsWithOutputs checks a task whose hundreds of parents have left more than one request can carry.
func TestJoinOfManyParentsWithOutputs(t *testing.T) { joinOfManyParents(t, 150, 16<<10) }

func TestLongJoinOfManyParentsWithOutputs(t *testing.T) {
	testneeds.Long(t)
	joinOfManyParents(t, 500, 4000)
}

// joinOfManyParents makes a task read the outputs of all its parents, each of the given size in bytes.
func joinOfManyParents(t *testing.T, parents, size int) {
	t.Parallel()
	s := script{}
	def := &v1.Definition{Name: "join", Tasks: map[string]*v1.TaskDefinition{}}
	var all []string
	for i := range parents {
		name := fmt.Sprintf("p%03d", i)
		all = append(all, name)
		def.Tasks[name] = shellTask()
		s[name] = []fake.Step{{Output: "text=" + strings.Repeat("y", size)}}
	}
	join := shellTask(all...)
	join.Env = map[string]string{"N": fmt.Sprintf("${{ size(parent.p%03d.output.text) + size(parent.p000.output.text) }}", parents-1)}
	def.Tasks["join"] = join
	c := own(t, ControlConfig{}).workers(t, s)
	c.start("n")
	want(t, c.submit(c.inputOf(def)).wait(), "completed", map[string]string{"join": "completed"})
	for _, call := range c.fake.Calls() {
		if call.Task == "join" && call.Attempt.Env["N"] != fmt.Sprint(2*size) {
			t.Errorf("environment of the join: %v", call.Attempt.Env)
		}
	}
}

// TestPartThatIsTerminated checks that a terminated part does not block its run, whichever execution of the run started
// it.
func TestPartThatIsTerminated(t *testing.T) {
	t.Parallel()
	limits := limits.Run{Instances: 5, PartitionInstances: 4, HistoryEvents: 60}
	c := own(t, ControlConfig{limits: limits}).workers(t, script{"each": {{Block: true}}})
	c.start("n")
	document := `{name: cut, tasks: {each: {type: shell, spec: {command: x}, parallel: 8, retry: {maxRetries: 0}}`
	for i := range 16 {
		document += fmt.Sprintf(", t%d: {type: shell, spec: {command: x}", i)
		if i > 0 {
			document += fmt.Sprintf(", dependsOn: [t%d]", i-1)
		}
		document += "}"
	}
	h := c.submit(c.input(document + "}}"))
	h.until("t15", func(task *v1.Task) bool { return task.GetState() == "completed" })
	eventually(t, "the run is in another execution", func() bool { return len(h.executions()) > 1 })
	for _, from := range []int{0, 4} {
		if err := c.conn.TerminateWorkflow(t.Context(), h.child(0, "each", from).id, "", "by the test"); err != nil {
			t.Fatal(err)
		}
	}
	run := h.wait()
	want(t, run, "failed", map[string]string{"each": "failed instances"})
	if got := run.GetTasks()["each"]; got.GetCounts()["lost"] != 8 || !strings.Contains(got.GetError(), "terminated") {
		t.Errorf("each: %v, %s", got.GetCounts(), got.GetError())
	}
}

// TestChildrenEndWithATerminatedRun checks that parts and child runs end soon after their run is terminated or deleted.
func TestChildrenEndWithATerminatedRun(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(*handle) error{
		"terminated": func(h *handle) error { return h.conn.TerminateWorkflow(t.Context(), h.id, "", "by the test") },
		"deleted": func(h *handle) error {
			h.delete()
			return nil
		},
	} {
		t.Run(how, func(t *testing.T) { checkChildrenEnd(t, end) })
	}
}

func checkChildrenEnd(t *testing.T, end func(*handle) error) {
	y := own(t, ControlConfig{limits: limits.Run{Instances: 5, PartitionInstances: 4}})
	c := y.workers(t, script{"each": {{Block: true}}, "a": {{Block: true}}})
	c.start("n")
	h := c.submit(c.input(fmt.Sprintf(`{name: gone, tasks: {each: {type: shell, spec: {command: x}, parallel: 8},
		child: {type: run, spec: {definition: %s}}}}`, c.childDefinition("inner", "a", ""))))
	c.running("each")
	c.running("a")
	if err := end(h); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is left", func() bool { return y.openWorkflows(t, names.RunWorkflow, names.FanOutWorkflow) == 0 })
}

// sent returns the most bytes that one workflow task of an execution has sent, according to its history.
func (h *handle) sent(execution string) int {
	h.t.Helper()
	tasks, most := map[int64]int{}, 0
	for _, e := range h.history(execution) {
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
	limits := limits.Run{ScheduleBytes: 256 << 10}
	y := own(t, ControlConfig{limits: limits})
	large := strings.Repeat("x", 3000)
	c := y.workers(t, script{"first": {{Output: fmt.Sprintf(`{"list": [%q, %q, "c"]}`, large, large)}}})
	c.start("n")
	def := &v1.Definition{Name: "budget", Tasks: map[string]*v1.TaskDefinition{"first": shellTask()}}
	for i := range 60 {
		task := shellTask()
		task.Env = map[string]string{"LARGE": strings.Repeat("\"", 2<<10)}
		def.Tasks[fmt.Sprintf("env-%d", i)] = task
		each := shellTask("first")
		each.Foreach = structpb.NewStringValue(fmt.Sprintf("first.list.map(x, x + '%d')", i))
		def.Tasks[fmt.Sprintf("each-%d", i)] = each
		asked := &v1.TaskDefinition{Type: "approval", DependsOn: []string{"first"}, Spec: structOf(map[string]any{"message": "${{ first.list[0] }}"})}
		def.Tasks[fmt.Sprintf("asked-%d", i)] = asked
		asked.Deadline, asked.ContinueOnError = "2s", true
		cached := shellTask()
		cached.Cache = &v1.Cache{Key: fmt.Sprintf("'%s%d'", c.label, i)}
		def.Tasks[fmt.Sprintf("cached-%d", i)] = cached
	}
	h := c.submit(c.inputOf(def))
	want(t, h.wait(), "completed", nil)
	for _, execution := range h.executions() {
		if n := h.sent(execution); n > limits.ScheduleBytes {
			t.Errorf("a workflow task has sent %d bytes of %d", n, limits.ScheduleBytes)
		}
	}
}
