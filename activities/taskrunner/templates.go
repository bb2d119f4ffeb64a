package taskrunner

import (
	"context"
	"maps"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/condition"
)

// templatesBudget bounds the rendering of one attempt's spec and env together.
const templatesBudget = 2 * time.Second

// templates renders the templates of specs and environments. The zero value is ready. It is safe for concurrent use.
type templates struct {
	make      sync.Once
	evaluator *condition.Evaluator // set by make
}

// render returns the spec and the environment of a member with their templates rendered. An expression that cannot be
// evaluated is a fault of the task.
func (t *templates) render(ctx context.Context, req *historyv1.ExecuteRequest, g *inputs, m *member) (spec *structpb.Struct, env map[string]string, err error) {
	if g.view == nil {
		return req.GetSpec(), req.GetEnv(), nil
	}
	t.make.Do(func() { t.evaluator = condition.NewEvaluator() })
	ctx, cancel := context.WithTimeout(ctx, templatesBudget)
	defer cancel()
	view := *g.view
	view.Input = inputOf(req, g, m)
	if spec, err = t.evaluator.Render(ctx, "spec", req.GetSpec(), view); err != nil {
		return nil, nil, err
	}
	env, err = t.evaluator.RenderEnv(ctx, "env", req.GetEnv(), view)
	return spec, env, err
}

// inputOf returns the value of `input` in expressions: the task's own input. For an instance it also has item, index and
// count, unless the task's input uses the name itself.
func inputOf(req *historyv1.ExecuteRequest, g *inputs, m *member) *structpb.Struct {
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
