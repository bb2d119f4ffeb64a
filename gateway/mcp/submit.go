package mcp

import (
	"context"
	"encoding/json"

	"google.golang.org/protobuf/proto"

	"switchyard/gateway/singletask"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// definitionName is the name of the argument that holds a definition.
const definitionName = "definition"

// definitionArgument returns the argument that holds a definition, with a note in its description.
func definitionArgument(note string) argument {
	return argument{definitionName, schema{
		"type":        []string{"string", "object"},
		"description": oneLine("The definition: a text in YAML or JSON, or an object. Its language is the resource " + guideURI + ". " + note),
	}}
}

const exampleDefinition = `{"name":"hello","tasks":{"a":{"type":"shell","spec":{"command":"echo hi"}},"b":{"type":"shell","spec":{"command":"echo done"},"dependsOn":["a"]}}}`

// document returns the definition argument as a document, or "" if it is missing.
func (i *invocation) document() (string, error) {
	switch d := i.arguments[definitionName].(type) {
	case string:
		return d, nil
	case map[string]any:
		data, err := json.MarshalIndent(d, "", "  ")
		return string(data), err
	}
	return "", nil
}

// submission returns the request of submit_workflow with its source filled in.
func (i *invocation) submission() (*v1.SubmitRunRequest, error) {
	req := i.request.(*v1.SubmitRunRequest)
	document, err := i.document()
	switch {
	case err != nil:
		return nil, err
	case document != "" && req.GetWorkflow() != "":
		return nil, usagef("Both `definition` and `workflow` are set; use only one.")
	case document == "" && req.GetWorkflow() == "":
		return nil, usagef("Set either `definition` or `workflow`; list_definitions lists the stored workflows.")
	case document != "":
		req.Source = &v1.SubmitRunRequest_Document{Document: document}
	}
	return req, nil
}

// submitWorkflow starts a run of a workflow.
func submitWorkflow(ctx context.Context, i *invocation) (any, error) {
	req, err := i.submission()
	if err != nil {
		return nil, err
	}
	return i.start(ctx, req)
}

// start submits a run and returns the projected answer of the tool.
func (i *invocation) start(ctx context.Context, req *v1.SubmitRunRequest) (map[string]any, error) {
	answer, err := i.tool.call.do(ctx, i.Services, req)
	if err != nil {
		return nil, err
	}
	return project(answer, parseProjection(i.tool.gives))
}

// planOf is the call that plans a run; planFields is the projection of a preview.
var (
	planOf     = callOf(ofRuns, switchyardv1connect.RunServiceClient.PlanRun)
	planFields = parseProjection("name input tasks(task type level dependsOn startsWhen instances placement) warnings(line column path message hint)")
)

// maxPlanned bounds the number of planned tasks in a preview.
const maxPlanned = 30

// plan returns the plan of a run without starting it.
func (i *invocation) plan(ctx context.Context, req *v1.SubmitRunRequest) (map[string]any, error) {
	req = proto.CloneOf(req)
	req.IdempotencyKey = ""
	answer, err := planOf.do(ctx, i.Services, &v1.PlanRunRequest{Submit: req})
	if err != nil {
		return nil, err
	}
	plan := answer.(*v1.PlanRunResponse)
	tasks := len(plan.GetTasks())
	plan.Tasks = plan.Tasks[:min(tasks, maxPlanned)]
	shown, err := project(plan, planFields)
	if err != nil {
		return nil, err
	}
	shown["taskCount"] = tasks
	return shown, nil
}

func previewWorkflow(ctx context.Context, i *invocation) (any, error) {
	req, err := i.submission()
	if err != nil {
		return nil, err
	}
	return i.plan(ctx, req)
}

func previewTask(ctx context.Context, i *invocation) (any, error) {
	req := i.request.(*v1.SubmitTaskRequest)
	return i.plan(ctx, &v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Definition{Definition: singletask.Definition(req)}, Options: req.GetOptions(), Batch: req.GetBatch(),
	})
}
