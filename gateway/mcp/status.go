package mcp

import (
	"context"
	"maps"
	"strings"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// workflowStatus returns a run with a page of its tasks.
func workflowStatus(ctx context.Context, i *invocation) (any, error) {
	req := i.request.(*v1.ListRunTasksRequest)
	if err := i.awaitEnd(ctx, req.GetId(), ""); err != nil {
		return nil, err
	}
	got, err := i.Runs.GetRun(ctx, connect.NewRequest(&v1.GetRunRequest{Id: req.GetId(), PageSize: 1, Brief: true}))
	if err != nil {
		return nil, err
	}
	run, err := shorten(got.Msg.GetRun())
	if err != nil {
		return nil, err
	}
	return i.callPaged(ctx, func(status map[string]any) {
		if tasks, ok := status["items"].([]any); ok {
			for _, task := range tasks {
				maps.DeleteFunc(task.(map[string]any), func(name string, _ any) bool { return strings.HasSuffix(name, "At") })
			}
			status["tasks"] = tasks
		}
		delete(status, "items")
		maps.Copy(status, run)
	})
}
