package run

import (
	"errors"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/names"
)

// addViews adds the views of ancestors that expressions see. The only error is calls.ErrInterrupted.
func (r *run) addViews(views map[string]*historyv1.ParentView, ancestors []string) error {
	for _, name := range ancestors {
		if part := r.in.GetPartition(); part != nil {
			views[name] = part.GetViews()[name]
			continue
		}
		i, ok := r.graph.Index(name)
		if !ok || views[name] != nil {
			continue
		}
		fanOut, err := r.fanOutView(i)
		if err != nil {
			return err
		}
		own := r.records.Of(i)
		views[name] = &historyv1.ParentView{State: r.core.Task(i).State, Result: own.Result(), Record: own.ResultKey, FanOut: fanOut}
	}
	return nil
}

// fanOutView returns what other tasks see of an ended task's instances, or nil if the task has none. The outputs are collected
// at the first call. The only error is calls.ErrInterrupted.
func (r *run) fanOutView(task int) (*historyv1.FanOutView, error) {
	counts := r.fanOutCounts(task)
	if counts == nil {
		return nil, nil
	}
	if view := r.records.Of(task).FanOut; view != nil {
		return view, nil
	}
	view := &historyv1.FanOutView{Count: counts.GetCount(), Completed: counts.GetCompleted(), Failed: counts.GetCount() - counts.GetCompleted()}
	collected, err := r.collect(task)
	if errors.Is(err, calls.ErrInterrupted) {
		return nil, err
	}
	view.Outputs, view.Error = collected.GetOutputs(), collected.GetError()
	if err != nil {
		view.Error = err.Error()
	}
	if v1.IsTaskTerminal(r.core.Task(task).State) {
		r.records.At(task).FanOut = view
	}
	return view, nil
}

// collect returns the outputs of a task's instances as a list, or why there is no list. It returns nil if all completed without
// output.
func (r *run) collect(task int) (*historyv1.FanOutView, error) {
	first, count := r.core.Instances(task)
	from, _, _, _ := r.core.Expansion(task)
	req := &historyv1.CollectRequest{
		RunId: r.id, Chain: r.chain, Generation: r.in.GetGeneration(), Task: r.graph.Name(task), From: int32(from),
		Items: make([]*historyv1.CollectItem, count), Stored: r.in.GetPartition() != nil,
	}
	some := r.fanOuts.AddOutputs(req, task)
	for k := range req.Items {
		state := r.core.Task(first + k).State
		item := &historyv1.CollectItem{State: state}
		if v1.IsTaskSuccess(state) {
			own := r.records.Of(first + k)
			if item.Record = own.ResultKey; item.Record == "" {
				item.Output = own.Result().GetOutput()
			}
			some = some || item.Record != "" || len(item.Output.GetFields()) > 0
		}
		req.Items[k] = item
	}
	if !some && r.core.InstanceCounts(task)[v1.TaskCompleted] == count {
		return nil, nil
	}
	var res historyv1.FanOutView
	if err := r.calls.MustNow("collect the outputs of "+req.Task, names.CollectActivity, &res, req); err != nil {
		return nil, err
	}
	return &res, nil
}

// parentOutput returns what a task sees of a parent's output: the output itself if it is small, else its record in the store.
// It returns nil if there is no output. The only error is calls.ErrInterrupted.
func (r *run) parentOutput(i int) (*historyv1.ParentOutput, error) {
	out := &historyv1.ParentOutput{Task: r.graph.Name(i)}
	var err error
	if out.FanOut, err = r.fanOutView(i); err != nil || out.FanOut != nil {
		return out, err
	}
	own := r.records.Of(i)
	switch output := own.Result().GetOutput(); {
	case own.ResultKey != "":
		out.Record = own.ResultKey
	case len(output.GetFields()) == 0:
		return nil, nil
	default:
		out.Output = output
	}
	return out, nil
}

// parentOutputs returns what a task sees of the outputs of its parents. The only error is calls.ErrInterrupted.
func (r *run) parentOutputs(i int) (all []*historyv1.ParentOutput, err error) {
	for _, p := range r.graph.Parents(i) {
		output, err := r.parentOutput(p)
		if err != nil {
			return nil, err
		}
		if output != nil {
			all = append(all, output)
		}
	}
	return all, nil
}
