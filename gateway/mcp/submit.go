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
func submission(_ context.Context, i *invocation) (*v1.SubmitRunRequest, []string, error) {
	req := i.request.(*v1.SubmitRunRequest)
	document := i.document()
	switch {
	case document != "" && req.GetWorkflow() != "":
		return nil, nil, usagef("Both `definition` and `workflow` are set; use only one.")
	case document == "" && req.GetWorkflow() == "":
		return nil, nil, usagef("Set either `definition` or `workflow`; list_definitions lists the stored workflows.")
	case document != "":
		req.Source = &v1.SubmitRunRequest_Document{Document: document}
	}
	return req, nil, nil
}

// submit returns what a tool does that starts a run, and what its preview does: it starts, or plans, the run of a request, and
// adds warnings to the answer.
func submit(of func(context.Context, *invocation) (req *v1.SubmitRunRequest, warnings []string, err error)) func(context.Context, *invocation) (any, error) {
	return func(ctx context.Context, i *invocation) (any, error) {
		req, warnings, err := of(ctx, i)
		if err != nil {
			return nil, err
		}
		var answer map[string]any
		if i.arguments.Preview {
			answer, err = i.plan(ctx, req)
		} else {
			i.request = req
			answer, err = i.callPaged(ctx, nil)
		}
		if err == nil && len(warnings) > 0 {
			answer["warnings"] = warnings
		}
		return answer, err
	}
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

func previewTask(ctx context.Context, i *invocation) (any, error) {
	req := i.request.(*v1.SubmitTaskRequest)
	return i.plan(ctx, &v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Definition{Definition: singletask.Definition(req)}, Options: req.GetOptions(), Batch: req.GetBatch(),
	})
}
