package mcp

import (
	"bytes"
	"context"
	"encoding/json"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/gateway/singletask"
	v1 "switchyard/proto/switchyard/v1"
)

const exampleDefinition = `{"name":"hello","tasks":{"a":{"type":"shell","spec":{"command":"echo hi"}},"b":{"type":"shell","spec":{"command":"echo done"},"dependsOn":["a"]}}}`

// document returns the definition argument as a document, or "" if it is missing.
func (i *invocation) document() string {
	var text string
	var indented bytes.Buffer
	if json.Unmarshal(i.arguments.Definition, &text) != nil && json.Indent(&indented, i.arguments.Definition, "", "  ") == nil {
		return indented.String()
	}
	return text
}

// submission returns the request of submit_workflow with its source filled in.
func (i *invocation) submission() (*v1.SubmitRunRequest, error) {
	req := i.request.(*v1.SubmitRunRequest)
	document := i.document()
	switch {
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

// start submits a run.
func (i *invocation) start(ctx context.Context, req *v1.SubmitRunRequest) (map[string]any, error) {
	res, err := i.Runs.SubmitRun(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, err
	}
	return shorten(res.Msg)
}

// maxPlanned bounds the number of planned tasks in a preview.
const maxPlanned = 30

// plan returns the plan of a run without starting it.
func (i *invocation) plan(ctx context.Context, req *v1.SubmitRunRequest) (map[string]any, error) {
	req = proto.CloneOf(req)
	req.IdempotencyKey = ""
	res, err := i.Runs.PlanRun(ctx, connect.NewRequest(&v1.PlanRunRequest{Submit: req}))
	if err != nil {
		return nil, err
	}
	tasks := len(res.Msg.GetTasks())
	res.Msg.Tasks = res.Msg.Tasks[:min(tasks, maxPlanned)]
	shown, err := shorten(res.Msg)
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
