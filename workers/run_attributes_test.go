package workers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor/fake"
	"switchyard/activities/library"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// attributes returns the search attributes of the newest execution.
func (h *handle) attributes() visibility.Attributes {
	h.t.Helper()
	return visibility.Decode(h.described().GetWorkflowExecutionInfo().GetSearchAttributes())
}

// upserts counts the upserts of search attributes in an execution.
func (h *handle) upserts(execution string) int {
	n := 0
	for _, e := range h.history(execution) {
		if e.GetEventType() == enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES {
			n++
		}
	}
	return n
}

// TestRunShowsSearchAttributes checks that visibility holds the run's attributes, nodes and state, and finally its
// error.
func TestRunShowsSearchAttributes(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"a": {{Block: true}}, "b": {fake.Exit(2)}})
	c.start("n")
	in := c.input(`{name: shown, description: reads meters, tasks: {
		a: {type: shell, spec: {command: x}},
		b: {type: shell, dependsOn: [a], spec: {command: x}, retry: {maxRetries: 0}}}}`)
	in.By, in.Batch = "ann", "night-7"
	h := c.submit(in)
	c.running("a")
	got := h.attributes()
	if got.Workflow != "shown" || got.State != "running" || got.Trigger != v1.TriggerManual || got.Parent != "" || got.Submitted.IsZero() ||
		!slices.Equal(got.Types, []string{"shell"}) || !slices.Equal(got.Labels, []string{c.label}) || !slices.Equal(got.Nodes, []string{c.name("n")}) ||
		got.Owner != "ann" || got.Batch != "night-7" || !strings.Contains(got.Text, "reads meters a b") {
		t.Errorf("while it runs: %+v", got)
	}
	if err := h.update(names.PauseUpdate, &v1.RunCommand{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "visibility knows that the run is paused", func() bool { return h.attributes().State == "paused" })
	if err := h.update(names.ResumeUpdate, &v1.RunCommand{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "visibility knows that the run continues", func() bool { return h.attributes().State == "running" })
	c.fake.Release("a")
	run := h.wait()
	want(t, run, "failed", map[string]string{"b": "failed"})
	if run.GetSubmittedBy() != "ann" || run.GetBatch() != "night-7" {
		t.Errorf("the run is by %q, of the batch %q", run.GetSubmittedBy(), run.GetBatch())
	}
	if got := h.attributes(); got.State != "failed" || !strings.Contains(got.Text, `task "b"`) || !strings.Contains(got.Text, "reads meters") {
		t.Errorf("after its end: %+v", got)
	}
	// The upserts are: the first node with all that was known at the start, the pause, its end, and the end of the run.
	if n := h.upserts(""); n > 5 {
		t.Errorf("%d commands for search attributes", n)
	}
}

// TestSearchAttributesOfChainTakeFewCommands checks that a chain of tasks on one node needs at most three upserts,
// however long it is: its start, its node if that is placed after the start was reported, and its end.
func TestSearchAttributesOfChainTakeFewCommands(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("n")
	h := c.submit(c.inputOf(chainBeside(12, map[string]*v1.TaskDefinition{})))
	want(t, h.wait(), "completed", nil)
	if n := h.upserts(""); n < 2 || n > 3 {
		t.Errorf("%d commands for search attributes, want 2 or 3", n)
	}
	if got := h.attributes(); got.State != "completed" {
		t.Errorf("after its end: %+v", got)
	}
}

// TestSearchAttributesAcrossExecutions checks that search attributes survive continue-as-new, and that partitions
// report the nodes of their instances to the run.
func TestSearchAttributesAcrossExecutions(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: limits.Run{HistoryEvents: 40, Instances: 5, PartitionInstances: 4}})
	c := y.workers(t, nil)
	c.start("n")
	def := chainBeside(15, map[string]*v1.TaskDefinition{})
	wide := shellTask()
	wide.Parallel = structpb.NewNumberValue(9)
	def.Tasks["wide"] = wide
	h := c.submit(c.inputOf(def))
	want(t, h.wait(), "completed", nil)
	if n := len(h.executions()); n < 2 {
		t.Fatalf("the run took %d executions, want several", n)
	}
	if got := h.attributes(); got.State != "completed" || got.Workflow != "detach" || !slices.Equal(got.Nodes, []string{c.name("n")}) {
		t.Errorf("after its end: %+v", got)
	}
	only := c.submit(c.inputOf(&v1.Definition{Name: "parts", Tasks: map[string]*v1.TaskDefinition{"wide": wide}}))
	want(t, only.wait(), "completed", nil)
	if got := only.attributes(); !slices.Equal(got.Nodes, []string{c.name("n")}) {
		t.Errorf("nodes of a run whose instances ran in partitions: %v", got.Nodes)
	}
}

// TestChildRunInheritsOwnerAndBatch checks that child runs have the owner and the batch of their run, including those
// that instances and later executions start.
func TestChildRunInheritsOwnerAndBatch(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: limits.Run{HistoryEvents: 40}})
	c := y.workers(t, nil)
	c.start("n")
	stored := c.keep("only", "")
	def := chainBeside(15, map[string]*v1.TaskDefinition{})
	spec, err := structpb.NewStruct(map[string]any{"workflow": stored})
	if err != nil {
		t.Fatal(err)
	}
	def.Tasks["wide"] = &v1.TaskDefinition{Type: "run", Spec: spec, Parallel: structpb.NewNumberValue(6)}
	def.Tasks["late"] = &v1.TaskDefinition{Type: "run", Spec: spec, DependsOn: []string{"t14"}}
	in := c.inputOf(def)
	in.By, in.Batch = "ann", "night-7"
	h := c.submit(in)
	run := h.wait()
	want(t, run, "completed", map[string]string{"wide": "completed", "late": "completed"})
	if n := len(h.executions()); n < 2 {
		t.Fatalf("the run took %d executions, want several", n)
	}
	eventually(t, "visibility has the runs of the instances", func() bool {
		found, err := c.conn.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf(
			"%s = '%s' AND %s = 'ann' AND %s = 'night-7'", names.ParentAttribute, h.id, names.OwnerAttribute, names.BatchAttribute)})
		return err == nil && len(found.GetExecutions()) == 7
	})
	id := run.GetTasks()["late"].GetChildRun()
	child := &handle{workerSet: c, id: id, run: c.conn.GetWorkflow(t.Context(), id, "")}
	if inner := child.wait(); inner.GetSubmittedBy() != "ann" || inner.GetBatch() != "night-7" {
		t.Errorf("the child is by %q, of the batch %q", inner.GetSubmittedBy(), inner.GetBatch())
	}
}

// startByName starts a run with only the name of a stored workflow, as a user of Temporal can.
func (c *workerSet) startByName(id string, input map[string]any) *handle {
	c.t.Helper()
	// A map is sent as plain JSON, as the temporal CLI and the Web UI send it.
	run, err := c.conn.ExecuteWorkflow(c.t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: names.ControlQueue}, names.RunWorkflow, input)
	if err != nil {
		c.t.Fatal(err)
	}
	return &handle{workerSet: c, id: id, run: c.conn.GetWorkflow(c.t.Context(), id, ""), chain: run.GetRunID()}
}

// TestRunOfStoredWorkflowByName checks that a run started in Temporal by the name of a stored workflow reads the
// definition itself, and keeps it when another version is stored meanwhile.
func TestRunOfStoredWorkflowByName(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"only": {{Block: true}}})
	c.start("n")
	name := c.keep("only", `inputs: {kind: {default: plain}, n: {type: integer, required: true}},`)
	h := c.startByName(names.NewRunID("byname"), map[string]any{"workflow": name, "input": map[string]any{"n": 3}})
	c.running("only")
	if got := h.attributes(); got.Workflow != name || got.Trigger != v1.TriggerManual || got.State != "running" || got.Submitted.IsZero() {
		t.Errorf("search attributes: %+v", got)
	}
	c.fake.Release("only")
	run := h.wait()
	want(t, run, "completed", map[string]string{"only": "completed"})
	if got := fmt.Sprint(run.GetInput().AsMap()); got != "map[kind:plain n:3]" {
		t.Errorf("the input is %s", got)
	}
	if n := len(h.executions()); n != 2 {
		t.Errorf("%d executions, want 2: the one that reads the definition, and the one that has it", n)
	}

	for what, test := range map[string]struct {
		input map[string]any
		want  string
	}{
		"an unknown workflow": {map[string]any{"workflow": "nothing-like-it"}, `no workflow is stored under the name "nothing-like-it"`},
		"a missing input":     {map[string]any{"workflow": name}, "input n is missing"},
		"a wrong input":       {map[string]any{"workflow": name, "input": map[string]any{"n": "three"}}, "n"},
		"nothing":             {map[string]any{}, `give {"workflow": "NAME"`},
	} {
		h := c.startByName(names.NewRunID("refused"), test.input)
		err := h.run.Get(within(t), nil)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the run has ended with %v", what, err)
		}
		if got := h.attributes(); got.State != "failed" {
			t.Errorf("%s: search attributes %+v", what, got)
		}
	}
}

// TestRunOfLargeStoredWorkflowByName checks that a definition that exceeds the result limit of a local activity reaches
// the run by reference.
func TestRunOfLargeStoredWorkflowByName(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("n")
	name := names.NewRunID("large")
	def := chainBeside(1, map[string]*v1.TaskDefinition{})
	def.Name = name
	for i := range 300 {
		task := shellTask()
		task.Env = map[string]string{"FILL": strings.Repeat(fmt.Sprint(i), 300)}
		task.Condition = "false"
		def.Tasks[fmt.Sprintf("f%03d", i)] = task
	}
	c.put(c.inputOf(def).GetDefinition())
	h := c.startByName(names.NewRunID("bylarge"), map[string]any{"workflow": name})
	want(t, h.wait(), "completed", map[string]string{"t00": "completed", "f299": "skipped"})
	if size := proto.Size(h.history("")[0]); size > 8<<10 {
		t.Errorf("the execution that has the definition was started with %d bytes", size)
	}
}

// put stores a definition under its name.
func (c *workerSet) put(def *v1.Definition) {
	c.t.Helper()
	def, err := definition.Complete(def)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := library.New(c.conn, c.conn.Namespace).Put(c.t.Context(), def, nil, false); err != nil {
		c.t.Fatal(err)
	}
}
