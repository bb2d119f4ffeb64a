package mcp

import (
	"context"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// subagentsRun and subagentsTask are the names of the runs of dispatch_subagents and of their task.
	subagentsRun, subagentsTask = "subagents", "agents"
	// maxSubagents bounds the subagents of one call.
	maxSubagents = 50
)

// subagents returns the request for a run with a fanned-out task for all subagents. The texts of the caller are in the input of
// the run, where they are not evaluated as expressions.
func subagents(_ context.Context, i *invocation) (*v1.SubmitRunRequest, []string, error) {
	count := 1
	if i.arguments.Count != nil {
		count = *i.arguments.Count
	}
	if count < 1 || count > maxSubagents {
		return nil, nil, usagef("count is %d; it must be 1 to %d", count, maxSubagents)
	}
	input, err := structpb.NewStruct(map[string]any{"prompt": i.arguments.Prompt, "contextSummary": i.arguments.ContextSummary})
	if err != nil {
		return nil, nil, usagef("prompt: %v", err)
	}
	values := map[string]any{"prompt": "${{ workflow.input.prompt }}", "model": i.arguments.Model}
	if i.arguments.ContextSummary != "" {
		values["contextSummary"] = "${{ workflow.input.contextSummary }}"
	}
	var tools []any
	for _, name := range i.arguments.Tools {
		tools = append(tools, name)
	}
	values["tools"] = tools
	spec, err := structpb.NewStruct(values)
	if err != nil {
		return nil, nil, usagef("model or tools: %v", err)
	}
	req := i.request.(*v1.SubmitRunRequest)
	req.Input = input
	req.Source = &v1.SubmitRunRequest_Definition{Definition: &v1.Definition{Name: subagentsRun, Tasks: map[string]*v1.TaskDefinition{
		subagentsTask: {Type: v1.TypeSubagent, Spec: spec, Parallel: structpb.NewNumberValue(float64(count)), MaxFailures: int32(count)},
	}}}
	return req, nil, nil
}
