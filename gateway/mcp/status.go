package mcp

import (
	"context"
	"maps"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// runFields is the projection of a run without its tasks; statusFields is the projection of its page of tasks.
var (
	runFields    = parseProjection("id=run name=workflow state reason error problem createdAt completedAt generation trigger parent taskCounts instanceCounts approval input context")
	statusFields = parseProjection("items=tasks(name type state reason node attempt error dependsOn count counts childRun notice held) nextPageToken total")
)

// statusSchema returns the schema of the results of get_workflow_status.
func statusSchema() schema {
	s := schemaOf((&v1.Run{}).ProtoReflect().Descriptor(), runFields)
	properties := maps.Clone(s["properties"].(schema))
	maps.Copy(properties, schemaOf((&v1.ListRunTasksResponse{}).ProtoReflect().Descriptor(), statusFields)["properties"].(schema))
	return schema{"type": "object", "properties": properties}
}

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
	run, err := project(got.Msg.GetRun(), runFields)
	if err != nil {
		return nil, err
	}
	for {
		answer, err := i.tool.call.do(ctx, i.Services, req)
		if err != nil {
			return nil, err
		}
		tasks, err := project(answer, statusFields)
		if err != nil {
			return nil, err
		}
		status := maps.Clone(run)
		maps.Copy(status, tasks)
		if i.isWithinLimit(status) || !i.halvePage() {
			return status, nil
		}
	}
}
