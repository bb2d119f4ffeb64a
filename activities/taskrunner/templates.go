package taskrunner

import (
	"context"
	"maps"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// templatesBudget bounds the templates of one attempt, in each of spec and env.
const templatesBudget = 2 * time.Second

// render returns the spec and the environment of a member with their templates
// replaced. An expression that cannot be evaluated is the task's fault.
func (n *Node) render(ctx context.Context, req *v1.ExecuteRequest, g *inputs, m *member) (spec *structpb.Struct, env map[string]string, err error) {
	if g.view == nil {
		return req.GetSpec(), req.GetEnv(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, templatesBudget)
	defer cancel()
	view := *g.view
	view.Input = inputOf(req, g, m)
	if spec, err = n.evaluator().Render(ctx, "spec", req.GetSpec(), view); err != nil {
		return nil, nil, err
	}
	env, err = n.evaluator().RenderEnv(ctx, "env", req.GetEnv(), view)
	return spec, env, err
}

// inputOf is what expressions see as `input`: the task's own, and of an instance
// also item, index and count, unless the task has taken the word.
func inputOf(req *v1.ExecuteRequest, g *inputs, m *member) *structpb.Struct {
	if m.index < 0 {
		return req.GetInput()
	}
	fields := map[string]*structpb.Value{
		"index": structpb.NewNumberValue(float64(m.index)),
		"count": structpb.NewNumberValue(float64(req.GetCount())),
	}
	if item := g.item(m); item != nil {
		fields["item"] = item
	}
	maps.Copy(fields, req.GetInput().GetFields())
	return &structpb.Struct{Fields: fields}
}
