package taskrunner

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor/workspace"
	"switchyard/activities/results"
	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/condition"
)

// inputs holds the complete inputs of a request's task. Values that did not travel with the request were read from the
// store. All members of the request share it.
type inputs struct {
	input *workspace.Input
	// items are the items of the stored list, or nil if the members have their own or there are none.
	items []*structpb.Value
	// view is the data for templates, without the input of an instance. It is nil if the request has no templates.
	view *condition.View
	// notices are the first lines of the log.
	notices []string
}

// inputReader reads the inputs of tasks from the store. It is safe for concurrent use.
type inputReader struct {
	records records
	lists   *results.ListCache
}

// inputReader returns the reader of the inputs of the node's attempts.
func (n *Node) inputReader() inputReader { return inputReader{n.records(), &n.lists} }

// awaitInputs calls gatherInputs, and retries while the store is away, because that must not fail a task. The error is
// final, or that of ctx.
func (r inputReader) awaitInputs(ctx context.Context, req *historyv1.ExecuteRequest) (s *inputs, err error) {
	err = r.records.insist(ctx, func() (err error) {
		s, err = r.gatherInputs(ctx, req)
		return err
	})
	return s, err
}

// gatherInputs reads the values that a request refers to.
func (r inputReader) gatherInputs(ctx context.Context, req *historyv1.ExecuteRequest) (*inputs, error) {
	g := &inputs{notices: slices.Clone(req.GetNotices())}
	if key := req.GetAncestors(); key != "" {
		var all historyv1.Ancestors
		if err := r.records.store.AwaitMessage(ctx, key, &all, store.Arrival); err != nil {
			return nil, fmt.Errorf("read what the ancestors of %s have left: %w", req.GetTask(), err)
		}
		req.Parents, req.Views, req.Ends = all.GetParents(), all.GetViews(), all.GetEnds()
	}
	for _, p := range req.GetParents() {
		if why := p.GetFanOut().GetError(); why != "" {
			g.notices = append(g.notices, fmt.Sprintf("%s is null in $SWITCHYARD_INPUT: %s", p.GetTask(), why))
		}
	}
	parents, err := r.parentOutputs(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("read the outputs of the parents of %s: %w", req.GetTask(), err)
	}
	shared, err := r.shared(ctx, req.GetContext())
	if err != nil {
		return nil, fmt.Errorf("read the context for %s: %w", req.GetTask(), err)
	}
	inputs, err := r.shared(ctx, req.GetRunInput())
	if err != nil {
		return nil, fmt.Errorf("read the input of the run for %s: %w", req.GetTask(), err)
	}
	ancestors, err := r.ancestors(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("read how the ancestors of %s ended: %w", req.GetTask(), err)
	}
	if g.input, err = workspace.NewInput(req.GetInput(), parents, ancestors, shownRun(req.GetRunView()), shared, inputs); err != nil {
		return nil, fmt.Errorf("input of %s: %w", req.GetTask(), err)
	}
	if key := req.GetItems(); key != "" {
		if g.items, err = r.lists.Read(ctx, r.records.store, key); err != nil {
			return nil, fmt.Errorf("read the items of %s: %w", req.GetTask(), err)
		}
	}
	if run := req.GetRunView(); run != nil {
		run.Input = inputs
	}
	if req.GetTemplates() {
		g.view = &condition.View{
			Parents:  make(map[string]*historyv1.ParentView, len(req.GetViews())),
			Workflow: &historyv1.WorkflowView{Name: req.GetWorkflow(), RunId: req.GetRunId(), Context: shared, Input: inputs},
			Run:      req.GetRunView(),
		}
		for task, view := range req.GetViews() {
			if g.view.Parents[task], err = results.ResolveView(ctx, r.records.store, task, view, store.Arrival); err != nil {
				return nil, err
			}
		}
	}
	return g, nil
}

// parentOutputs returns the outputs of the parents by name. Each is an object, or a list of objects if the parent fanned
// out. It is null if the outputs of a fan-out are too large together: every dependent task would hold them in memory and
// in a file of its own.
func (r inputReader) parentOutputs(ctx context.Context, req *historyv1.ExecuteRequest) (map[string]*structpb.Value, error) {
	outputs := make(map[string]*structpb.Value, len(req.GetParents()))
	for _, p := range req.GetParents() {
		output := p.GetOutput()
		switch {
		case p.GetFanOut() != nil:
			list, err := r.fanOutputs(ctx, p.GetFanOut())
			if err != nil {
				return nil, fmt.Errorf("task %s: %w", p.GetTask(), err)
			}
			outputs[p.GetTask()] = list
			continue
		case p.GetRecord() != "":
			record, err := r.records.store.AwaitResult(ctx, p.GetRecord(), store.Arrival)
			if err != nil {
				return nil, fmt.Errorf("task %s: %w", p.GetTask(), err)
			}
			output = record.GetResult().GetOutput()
		}
		if output == nil {
			output = &structpb.Struct{}
		}
		outputs[p.GetTask()] = structpb.NewStructValue(output)
	}
	return outputs, nil
}

// fanOutputs returns the outputs of a parent's instances. The caller must not change them.
func (r inputReader) fanOutputs(ctx context.Context, view *historyv1.FanOutView) (*structpb.Value, error) {
	switch {
	case view.GetError() != "":
		return structpb.NewNullValue(), nil
	case view.GetOutputs() == nil:
		return structpb.NewListValue(condition.EmptyOutputs(int(view.GetCount()))), nil
	}
	outputs, err := r.lists.All(ctx, r.records.store, view.GetOutputs())
	return structpb.NewListValue(results.ListOf(outputs)), err
}

// shared returns an object that travelled with a request or that is in the store, or nil if there is none.
func (r inputReader) shared(ctx context.Context, s *historyv1.Shared) (*structpb.Struct, error) {
	if s.GetKey() == "" {
		return s.GetValue(), nil
	}
	var value structpb.Struct
	if err := r.records.store.AwaitMessage(ctx, s.GetKey(), &value, store.Arrival); err != nil {
		return nil, err
	}
	return &value, nil
}

// item returns the item of a member, or nil if it has none.
func (g *inputs) item(m *member) *structpb.Value {
	if m.item == nil && 0 <= m.index && int(m.index) < len(g.items) {
		return g.items[m.index]
	}
	return m.item
}
