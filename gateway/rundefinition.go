package gateway

import (
	"context"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// GetRunDefinition returns the definition that a run was started with.
func (g *Gateway) GetRunDefinition(ctx context.Context, req *connect.Request[v1.GetRunDefinitionRequest]) (*connect.Response[v1.GetRunDefinitionResponse], error) {
	id, err := g.resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	desc, err := g.reader.describe(ctx, id)
	if err != nil {
		return nil, err
	}
	in, err := g.reader.definedInput(ctx, desc.GetWorkflowExecutionInfo())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.GetRunDefinitionResponse{Id: id, Definition: in.GetDefinition()}), nil
}
