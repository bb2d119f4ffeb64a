package gateway

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// RetryRun starts the next generation of a run that has ended. Of concurrent calls for the same run one starts it, and the
// others find it open.
func (g *Gateway) RetryRun(ctx context.Context, req *connect.Request[v1.RetryRunRequest]) (*connect.Response[v1.RetryRunResponse], error) {
	id, err := g.index.Resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	var res *v1.RetryRunResponse
	err = g.awaitStore(ctx, "start run "+id+" again", func(ctx context.Context) error {
		res, err = g.retryRun(ctx, id, req.Msg.GetFrom(), req.Msg.GetLimits())
		return err
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(res), nil
}

func (g *Gateway) retryRun(ctx context.Context, id string, from []string, limits map[string]*v1.AgentLimits) (*v1.RetryRunResponse, error) {
	var generation int32
	var owner string
	err := g.retryWhileChanging(ctx, id, func(desc *runview.Description, v *runview.View) (string, error) {
		if runview.IsOpen(desc.GetWorkflowExecutionInfo().GetStatus()) {
			return "", rpcerror.WrongState("run %s is still open; only one that has ended is started again, while of an open one dead letters can be put back", id)
		}
		again, err := rerunOf(v, from, limits)
		if err == nil {
			err = checkAgentLimits(v, limits)
		}
		if err != nil {
			return "", err
		}
		generation, owner = v.Run.GetGeneration()+1, runindex.OwnerOf(desc.GetWorkflowExecutionInfo())
		return "start run " + id + " again", g.reopen(ctx, desc, &v1.RunInput{Generation: generation, Again: again}, limits)
	})
	if err != nil {
		return nil, err
	}
	g.index.AddSubmitted(id, owner)
	return &v1.RetryRunResponse{Id: id, Generation: generation}, nil
}

// rerunOf returns what the next generation of an ended run repeats: the named tasks with everything downstream, or, if
// none is named, everything that did not complete. A completed run without named tasks can only continue if failed agents
// of it get new limits.
func rerunOf(v *runview.View, from []string, limits map[string]*v1.AgentLimits) (*v1.Again, error) {
	id := v.Run.GetId()
	if len(from) > 0 {
		from = slices.Compact(slices.Sorted(slices.Values(from)))
		for _, task := range from {
			if v.Tasks[task] == nil {
				return nil, v.NoTask(task)
			}
		}
		return &v1.Again{From: from}, nil
	}
	if len(v.Tasks) == 0 {
		return nil, rpcerror.WrongState("run %s has ended before it had a definition, and there is nothing to do again in it; submit its workflow", id)
	}
	if v.Run.GetState() == v1.RunCompleted && !failedWithNewLimits(v, limits) {
		return nil, rpcerror.WrongState("run %s has completed, and there is nothing to do again in it; name the tasks to do again from", id)
	}
	for _, t := range v.Tasks {
		if !v1.IsTaskSuccess(t.Task.GetState()) {
			return &v1.Again{Failed: true}, nil
		}
	}
	return nil, rpcerror.WrongState("every task of run %s has completed; name the tasks to do again from", id)
}

// failedWithNewLimits reports whether one of the tasks with new limits did not complete.
func failedWithNewLimits(v *runview.View, limits map[string]*v1.AgentLimits) bool {
	for name := range limits {
		if t := v.Tasks[name]; t != nil && !v1.IsTaskSuccess(t.Task.GetState()) {
			return true
		}
	}
	return false
}

// RerunRun starts a new run with the definition and the input of another run. Values in the request replace those of the
// input.
func (g *Gateway) RerunRun(ctx context.Context, req *connect.Request[v1.RerunRunRequest]) (*connect.Response[v1.RerunRunResponse], error) {
	id, err := g.index.Resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	desc, err := g.reader.Describe(ctx, id)
	if err != nil {
		return nil, err
	}
	first, err := g.reader.DefinedInput(ctx, desc.GetWorkflowExecutionInfo())
	if err != nil {
		return nil, err
	}
	input := merged(first.GetInput(), req.Msg.GetInput())
	if input, err = definition.Input(first.GetDefinition(), input); err != nil {
		return nil, definitionError(err)
	}
	if err := checkInput(input); err != nil {
		return nil, err
	}
	in := g.submittedBy(ctx, &v1.RunInput{
		Definition: first.GetDefinition(), Input: input, References: first.GetReferences(), Options: first.GetOptions(), Batch: first.GetBatch(),
	})
	fresh, _, err := g.start(ctx, in, v1.TriggerRerun, "")
	if err != nil {
		return nil, fmt.Errorf("start run %s anew: %w", id, err)
	}
	res := connect.NewResponse(&v1.RerunRunResponse{Id: fresh, Name: first.GetDefinition().GetName()})
	markCreated(res, fresh)
	return res, nil
}

// merged returns input with some values replaced. It changes neither argument.
func merged(input, values *structpb.Struct) *structpb.Struct {
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
