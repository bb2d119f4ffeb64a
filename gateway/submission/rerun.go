package submission

import (
	"context"
	"fmt"
	"maps"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/gateway/definitions"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// RerunRun starts a new run with the definition and the input of another run. Values in the request replace those of the
// input.
func (s *Submitter) RerunRun(ctx context.Context, req *connect.Request[v1.RerunRunRequest]) (*connect.Response[v1.RerunRunResponse], error) {
	id, err := s.Index.Resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	desc, err := s.Reader.Describe(ctx, id)
	if err != nil {
		return nil, err
	}
	first, err := s.Reader.DefinedInput(ctx, desc.GetWorkflowExecutionInfo())
	if err != nil {
		return nil, err
	}
	input := mergeInput(first.GetInput(), req.Msg.GetInput())
	if input, err = definition.Input(first.GetDefinition(), input); err != nil {
		return nil, definitions.Error(err)
	}
	if err := checkInput(input); err != nil {
		return nil, err
	}
	in := &historyv1.RunInput{
		Definition: first.GetDefinition(), Input: input, References: first.GetReferences(), Options: first.GetOptions(), Batch: first.GetBatch(),
	}
	if in.Source, err = s.sourceOf(ctx, first, id); err != nil {
		return nil, err
	}
	if err := s.recordSubmitter(ctx, in); err != nil {
		return nil, err
	}
	fresh, _, err := s.Start(ctx, in, v1.TriggerRerun, "")
	if err != nil {
		return nil, fmt.Errorf("rerun run %s: %w", id, err)
	}
	res := connect.NewResponse(&v1.RerunRunResponse{Id: fresh, Name: first.GetDefinition().GetName()})
	MarkCreated(res, fresh)
	return res, nil
}

// mergeInput returns input with some values replaced. It changes neither argument.
func mergeInput(input, values *structpb.Struct) *structpb.Struct {
	if len(values.GetFields()) == 0 {
		return input
	}
	all := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	if input != nil {
		all = proto.CloneOf(input)
	}
	if all.Fields == nil {
		all.Fields = map[string]*structpb.Value{}
	}
	maps.Copy(all.Fields, values.GetFields())
	return all
}
