package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor/fake"
	"switchyard/activities/library"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// searchAttributes returns the search attributes of the newest execution.
func searchAttributes(h *workertest.Handle) visibility.Attributes {
	h.T.Helper()
	return visibility.Decode(describeRun(h).GetWorkflowExecutionInfo().GetSearchAttributes())
}

// countUpserts counts the upserts of search attributes in an execution.
func countUpserts(h *workertest.Handle, execution string) int {
	n := 0
	for _, e := range h.History(execution) {
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
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Block: true}}, "b": {fake.Exit(2)}})
	c.Start("n")
	in := c.Input(`{name: shown, description: reads meters, tasks: {
		a: {type: shell, spec: {command: x}},
		b: {type: shell, dependsOn: [a], spec: {command: x}, retry: {maxRetries: 0}}}}`)
	in.By, in.Batch = "ann", "night-7"
	h := c.Submit(in)
	c.AwaitRunning("a")
	var got visibility.Attributes
	workertest.Eventually(t, "visibility knows the node of the run", func() bool {
		got = searchAttributes(h)
		return len(got.Nodes) > 0
	})
	if got.Workflow != "shown" || got.State != "running" || got.Trigger != v1.TriggerManual || got.Parent != "" || got.Submitted.IsZero() ||
		!slices.Equal(got.Types, []string{"shell"}) || !slices.Equal(got.Labels, []string{c.Label}) || !slices.Equal(got.Nodes, []string{c.Name("n")}) ||
		got.Owner != "ann" || got.Batch != "night-7" || !strings.Contains(got.Text, "reads meters a b") {
		t.Errorf("while it runs: %+v", got)
	}
	mustSteerRun(h, names.PauseUpdate)
	workertest.Eventually(t, "visibility knows that the run is paused", func() bool { return searchAttributes(h).State == "paused" })
	mustSteerRun(h, names.ResumeUpdate)
	workertest.Eventually(t, "visibility knows that the run continues", func() bool { return searchAttributes(h).State == "running" })
	c.Fake.Release("a")
	run := h.Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"b": "failed"})
	if run.GetSubmittedBy() != "ann" || run.GetBatch() != "night-7" {
		t.Errorf("the run is by %q, of the batch %q", run.GetSubmittedBy(), run.GetBatch())
	}
	if got := searchAttributes(h); got.State != "failed" || !strings.Contains(got.Text, `task "b"`) || !strings.Contains(got.Text, "reads meters") {
		t.Errorf("after its end: %+v", got)
	}
	// The upserts are: the first node with all that was known at the start, the pause, its end, and the end of the run.
	if n := countUpserts(h, ""); n > 5 {
		t.Errorf("%d commands for search attributes", n)
	}
}

// TestSearchAttributesAcrossExecutions checks that search attributes survive continue-as-new, and that partitions
// report the nodes of their instances to the run.
func TestSearchAttributesAcrossExecutions(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, quietLimits)
	c := y.Nodes(t, nil)
	c.Start("n")
	def := chainBeside(15, map[string]*v1.TaskDefinition{})
	wide := workertest.ShellTask()
	wide.Parallel = structpb.NewNumberValue(9)
	def.Tasks["wide"] = wide
	h := c.Submit(c.InputOf(def))
	workertest.CheckRun(t, h.Wait(), "completed", nil)
	if n := len(executionsOf(h)); n < 2 {
		t.Fatalf("the run took %d executions, want several", n)
	}
	if got := searchAttributes(h); got.State != "completed" || got.Workflow != "detach" || !slices.Equal(got.Nodes, []string{c.Name("n")}) {
		t.Errorf("after its end: %+v", got)
	}
	only := c.Submit(c.InputOf(&v1.Definition{Name: "parts", Tasks: map[string]*v1.TaskDefinition{"wide": wide}}))
	workertest.CheckRun(t, only.Wait(), "completed", nil)
	if got := searchAttributes(only); !slices.Equal(got.Nodes, []string{c.Name("n")}) {
		t.Errorf("nodes of a run whose instances ran in partitions: %v", got.Nodes)
	}
}

// startByName starts a run with only the name of a stored workflow, as a user of Temporal can.
func startByName(c *workertest.Nodes, id string, input map[string]any) *workertest.Handle {
	c.T.Helper()
	// A map is sent as plain JSON, as the temporal CLI and the Web UI send it.
	run, err := c.Conn.ExecuteWorkflow(c.T.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: names.ControlQueue}, names.RunWorkflow, input)
	if err != nil {
		c.T.Fatal(err)
	}
	return &workertest.Handle{Nodes: c, ID: id, Workflow: c.Conn.GetWorkflow(c.T.Context(), id, ""), Chain: run.GetRunID()}
}

// TestRunOfStoredWorkflowByName checks that a run started in Temporal by the name of a stored workflow reads the
// definition itself, and keeps it when another version is stored meanwhile.
func TestRunOfStoredWorkflowByName(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"only": {{Block: true}}})
	c.Start("n")
	name := storeChildWorkflow(c, "only", `inputs: {kind: {default: plain}, n: {type: integer, required: true}},`)
	h := startByName(c, names.NewRunID("byname"), map[string]any{"workflow": name, "input": map[string]any{"n": 3}})
	c.AwaitRunning("only")
	if got := searchAttributes(h); got.Workflow != name || got.Trigger != v1.TriggerManual || got.State != "running" || got.Submitted.IsZero() {
		t.Errorf("search attributes: %+v", got)
	}
	c.Fake.Release("only")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"only": "completed"})
	if got := fmt.Sprint(run.GetInput().AsMap()); got != "map[kind:plain n:3]" {
		t.Errorf("the input is %s", got)
	}
	if n := len(executionsOf(h)); n != 2 {
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
		h := startByName(c, names.NewRunID("refused"), test.input)
		err := h.Workflow.Get(within(t), nil)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the run has ended with %v", what, err)
		}
		if got := searchAttributes(h); got.State != "failed" {
			t.Errorf("%s: search attributes %+v", what, got)
		}
	}
}

// TestRunOfLargeStoredWorkflowByName checks that a definition that exceeds the result limit of a local activity reaches
// the run by reference.
func TestRunOfLargeStoredWorkflowByName(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("n")
	name := names.NewRunID("large")
	def := chainBeside(1, map[string]*v1.TaskDefinition{})
	def.Name = name
	for i := range 300 {
		task := workertest.ShellTask()
		task.Env = map[string]string{"FILL": strings.Repeat(fmt.Sprint(i), 300)}
		task.Condition = "false"
		def.Tasks[fmt.Sprintf("f%03d", i)] = task
	}
	storeWorkflow(c, c.InputOf(def).GetDefinition())
	h := startByName(c, names.NewRunID("bylarge"), map[string]any{"workflow": name})
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"t00": "completed", "f299": "skipped"})
	if size := proto.Size(h.History("")[0]); size > 8<<10 {
		t.Errorf("the execution that has the definition was started with %d bytes", size)
	}
}

// storeWorkflow stores a definition under its name.
func storeWorkflow(c *workertest.Nodes, def *v1.Definition) {
	c.T.Helper()
	def, err := definition.Complete(def)
	if err != nil {
		c.T.Fatal(err)
	}
	if _, err := library.New(c.Conn, c.Conn.Namespace).Put(c.T.Context(), def, library.PutOptions{}); err != nil {
		c.T.Fatal(err)
	}
}
