package workflows

import (
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// Sizes of what an attempt may return in its result, and of what travels with a
// request; anything larger is read from the store.
const (
	maxInlineResult = 24 << 10
	maxInlineTotal  = 16 << 20
	maxInlineShared = 4 << 10
)

// executeRequest is what a node is told of the members of a unit, of which there
// is at least one.
func (r *run) executeRequest(a assignment, members []int) *v1.ExecuteRequest {
	first := members[0]
	task, rec := r.board.task(first), r.core.Task(first)
	def := r.core.Definition(first)
	req := &v1.ExecuteRequest{
		RunId:       r.id,
		Workflow:    r.in.GetDefinition().GetName(),
		Task:        r.graph.Name(task),
		Attempt:     rec.Attempt,
		Claim:       rec.Claim,
		Node:        a.node,
		Type:        def.GetType(),
		Spec:        def.GetSpec(),
		Env:         def.GetEnv(),
		Input:       def.GetInput(),
		Resources:   def.GetResources(),
		InlineLimit: r.inlineLimit(),
		Generation:  r.in.GetGeneration(),
		Incarnation: a.incarnation,
		Gpus:        a.gpus,
		NumaNode:    a.numaNode,
		Unheard:     r.board.unheard(first),
		Checkpoint:  r.board.checkpoint(first),
		Context:     r.shared(&r.sharedContext, "context", r.context),
		RunInput:    r.shared(&r.sharedInput, "input", r.in.GetInput()),
		Notices:     r.board.noticesFor(members),
	}
	if t := definition.Timeout(def); t > 0 {
		req.Timeout = durationpb.New(t)
	}
	if part := r.in.GetPart(); part != nil {
		req.Parents, req.Views = part.GetParents(), part.GetViews()
	}
	for _, p := range r.graph.Parents(task) {
		if output := r.parentOutput(p); output != nil {
			req.Parents = append(req.Parents, output)
		}
	}
	if req.Templates = definition.HasTemplates(def); req.Templates && r.in.GetPart() == nil {
		req.Views = map[string]*v1.ParentView{}
		r.view(req.Views, r.in.GetReferences()[req.Task].GetTemplates())
	}
	if task != first {
		r.addInstances(req, members)
	}
	return req
}

// inlineLimit is how much of streams and output the answer to a request may hold.
func (r *run) inlineLimit() int32 { return int32(min(maxInlineResult, maxInlineTotal/r.core.Len())) }

// addInstances says which instances of its task a request is for.
func (r *run) addInstances(req *v1.ExecuteRequest, members []int) {
	number := int32(r.core.Number(members[0]))
	req.Index, req.Count = &number, int32(r.board.fan(r.core.Group(members[0])).total)
	req.Item, req.Items = r.item(members[0])
	if len(members) == 1 {
		return
	}
	req.Item, req.Checkpoint = nil, nil
	for _, m := range members {
		rec := r.core.Task(m)
		member := &v1.Member{
			Index: int32(r.core.Number(m)), Attempt: rec.Attempt, Claim: rec.Claim,
			Unheard: r.board.unheard(m), Checkpoint: r.board.checkpoint(m),
		}
		member.Item, _ = r.item(m)
		req.Batch = append(req.Batch, member)
	}
}

// sharedObject is an object that many requests carry, as they carry it.
type sharedObject struct {
	of     *structpb.Struct
	shared *v1.Shared
}

// shared is how a request carries an object: itself when it is small, else by
// reference, for which it is stored once. Nil when it is empty.
func (r *run) shared(kept *sharedObject, what string, object *structpb.Struct) *v1.Shared {
	if kept.of == object {
		return kept.shared
	}
	kept.of, kept.shared = object, nil
	switch {
	case len(object.GetFields()) == 0:
	case proto.Size(object) <= maxInlineShared:
		kept.shared = &v1.Shared{Value: object}
	default:
		ctx := workflow.WithLocalActivityOptions(r.ctx, stateOptions("store the "+what))
		kept.shared = &v1.Shared{}
		err := workflow.ExecuteLocalActivity(ctx, names.SaveSharedActivity, r.self, r.in.GetGeneration(), what, r.board.contextRevision, object).
			Get(ctx, &kept.shared.Key)
		if err != nil { // it goes on for as long as the store is away
			workflow.GetLogger(r.ctx).Warn("could not be stored", "what", what, "error", err)
			kept.shared = &v1.Shared{Value: object}
		}
	}
	return kept.shared
}
