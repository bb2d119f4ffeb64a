package a2a

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// TestEveryRunStateMapsToATaskState checks that every run state maps to a task state that is terminal exactly if the run
// state is.
func TestEveryRunStateMapsToATaskState(t *testing.T) {
	t.Parallel()
	for _, run := range v1.RunStates() {
		task, ok := states[run]
		if !ok || task.Terminal() != v1.IsRunTerminal(run) {
			t.Errorf("%s is %q", run, task)
		}
		back, err := runStateOf(task)
		if err != nil || back != run && back != "" {
			t.Errorf("%s is listed as %q, %v", task, back, err)
		}
	}
}

// definedRuns counts how often the definition of its run is read.
type definedRuns struct {
	switchyardv1connect.RunServiceClient
	definition *v1.Definition
	reads      int
}

func (f *definedRuns) GetRunDefinition(context.Context, *connect.Request[v1.GetRunDefinitionRequest]) (*connect.Response[v1.GetRunDefinitionResponse], error) {
	f.reads++
	return connect.NewResponse(&v1.GetRunDefinitionResponse{Definition: f.definition}), nil
}

// TestStatusContainsPendingApprovals follows the status of a run while approvals appear and are decided.
func TestStatusContainsPendingApprovals(t *testing.T) {
	t.Parallel()
	o := &observation{run: &v1.Run{Id: "r", State: v1.RunRunning, Batch: "c"}, total: 3}
	approval := func(state string) *v1.Task { return &v1.Task{Type: v1.TypeApproval, State: state, Error: "ship it?"} }
	o.update(map[string]*v1.Task{"a": {Type: v1.TypeShell, State: v1.TaskCompleted}, "gate": approval(v1.TaskPaused), "other": {Type: v1.TypeShell, State: v1.TaskPaused}})
	status := o.status(time.Unix(1, 0))
	if text := status.Message.Parts[0].Text(); status.State != a2a.TaskStateInputRequired || !strings.HasPrefix(text, "gate asks for approval: ship it?\n") || status.Message.ContextID != "c" {
		t.Errorf("%+v, %q", status, text)
	}
	if data := fmt.Sprint(status.Message.Parts[1].Data()); data != "map[approvals:[map[asks:ship it? task:gate]]]" {
		t.Errorf("data: %s", data)
	}
	spec, _ := structpb.NewStruct(map[string]any{"inputs": map[string]any{"region": map[string]any{"enum": []any{"eu"}}, "count": map[string]any{}}})
	runs := &definedRuns{definition: &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"gate": {Type: v1.TypeApproval, Spec: spec}}}}
	reads := &agent{Services: Services{Runs: runs}}
	reads.readInputs(t.Context(), o)
	reads.readInputs(t.Context(), o)
	status = o.status(time.Unix(1, 0))
	if text := status.Message.Parts[0].Text(); !strings.HasPrefix(text, "gate asks for approval: ship it?; its inputs are count, region\n") {
		t.Errorf("with inputs: %q", text)
	}
	if data := fmt.Sprint(status.Message.Parts[1].Data()); data != "map[approvals:[map[asks:ship it? inputs:map[count:map[] region:map[enum:[eu]]] task:gate]]]" {
		t.Errorf("with inputs: %s", data)
	}
	if n := runs.reads; n != 1 {
		t.Errorf("the definition was read %d times", n)
	}
	o.run.State = v1.RunPendingApproval // a run has this state when only the approval is left
	if status = o.status(time.Unix(1, 0)); status.State != a2a.TaskStateInputRequired {
		t.Errorf("%+v", status)
	}
	o.run.Approval = &v1.RunApproval{State: v1.ApprovalPending}
	if status = o.status(time.Unix(1, 0)); status.State != a2a.TaskStateAuthRequired {
		t.Errorf("a run that may not start: %+v", status)
	}
	o.run.Approval.DefinitionVersion = 2
	if text := o.text(); !strings.Contains(text, `an approval also has {"definitionVersion": 2}`) {
		t.Errorf("a run that a retry has changed: %s", text)
	}
	o.run.State, o.run.Approval.State = v1.RunRunning, v1.ApprovalApproved
	o.update(map[string]*v1.Task{"gate": approval(v1.TaskCompleted), "other": {Type: v1.TypeVPS, State: v1.TaskLost, Notice: "its node is away"}})
	if status = o.status(time.Unix(1, 0)); status.State != a2a.TaskStateWorking || status.Message.Parts[0].Text() != "running; 2 of 3 tasks have ended" {
		t.Errorf("%+v", status)
	}
	o.run.State, o.run.Error = v1.RunFailed, "task a: exit code 1"
	if status = o.status(time.Unix(1, 0)); status.State != a2a.TaskStateFailed || status.Message.Parts[0].Text() != o.run.Error {
		t.Errorf("%+v", status)
	}
}

func completed(stdout string, output map[string]any) *v1.Task {
	fields, _ := structpb.NewStruct(output)
	return &v1.Task{Type: v1.TypeShell, State: v1.TaskCompleted, Result: &v1.TaskResult{Stdout: stdout, Output: fields}}
}

// TestArtifactsHoldTaskResults builds artifacts from outputs, instance outputs and printed text.
func TestArtifactsHoldTaskResults(t *testing.T) {
	t.Parallel()
	fanOut := &v1.Task{State: v1.TaskCompleted, Instances: []*v1.Instance{{Index: 0}, {Index: 1, Result: completed("", map[string]any{"n": 1.0}).Result}}}
	var kept artifacts
	kept.add(map[string]*v1.Task{
		"output": completed("printed", map[string]any{"n": 1.0}), "printed": completed(strings.Repeat("ä", maxPrinted)+"end\n", nil), "nothing": completed("\n", nil),
		"failed": {State: v1.TaskFailed, Result: &v1.TaskResult{Stdout: "x"}}, "each": fanOut,
	})
	var got []string
	for _, artifact := range kept.all {
		part := artifact.Parts[0]
		text := fmt.Sprint(part.Data())
		if part.Data() == nil {
			text = fmt.Sprint(len(part.Text()) <= maxPrinted, strings.HasSuffix(part.Text(), "äend"), artifact.Metadata)
		}
		got = append(got, fmt.Sprintf("%s %s %s", artifact.ID, part.MediaType, text))
	}
	want := "each application/json [<nil> map[n:1]], output application/json map[n:1], printed text/plain true true map[truncated:true]"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("%s\nwant %s", text, want)
	}
}

// TestArtifactsAreBounded adds more than an answer holds, twice.
func TestArtifactsAreBounded(t *testing.T) {
	t.Parallel()
	var many, large artifacts
	tasks := map[string]*v1.Task{}
	for i := range maxArtifacts + 50 {
		tasks[fmt.Sprintf("t%03d", i)] = completed("x", nil)
	}
	many.add(tasks)
	many.add(tasks)
	if len(many.all) != maxArtifacts || many.omitted != 50 {
		t.Errorf("%d artifacts, %d omitted", len(many.all), many.omitted)
	}
	big := strings.Repeat("x", maxArtifactBytes)
	large.add(map[string]*v1.Task{"a": completed("", map[string]any{"text": big}), "b": completed("", map[string]any{"text": big})})
	if len(large.all) != 1 || large.omitted != 1 || !large.isFull() {
		t.Errorf("%d artifacts, %d omitted", len(large.all), large.omitted)
	}
}
