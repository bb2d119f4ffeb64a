package run

import (
	"errors"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/names"
)

// ancestry is what tasks and expressions see of the tasks before them.
type ancestry struct {
	*execution
}

// An ancestorReader returns what tasks and expressions see of the tasks before them.
type ancestorReader interface {
	ancestorEnds(task int) *historyv1.AncestorEnds
	addViews(views map[string]*historyv1.ParentView, ancestors []string) error
	parentOutputs(i int) (all []*historyv1.ParentOutput, err error)
}

// addViews adds the views of ancestors that expressions see. The only error is calls.ErrInterrupted.
func (an *ancestry) addViews(views map[string]*historyv1.ParentView, ancestors []string) error {
	for _, name := range ancestors {
		if part := an.in.GetPartition(); part != nil {
			views[name] = part.GetViews()[name]
			continue
		}
		i, ok := an.graph.Index(name)
		if !ok || views[name] != nil {
			continue
		}
		fanOut, err := an.fanOutView(i)
		if err != nil {
			return err
		}
		own := an.records.Of(i)
		views[name] = &historyv1.ParentView{State: an.core.Task(i).State, Result: own.Result(), Record: own.ResultKey, FanOut: fanOut}
	}
	return nil
}

// fanOutView returns what other tasks see of an ended task's instances, or nil if the task has none. The outputs are collected
// at the first call. The only error is calls.ErrInterrupted.
func (an *ancestry) fanOutView(task int) (*historyv1.FanOutView, error) {
	counts := an.fanOutCounts(task)
	if counts == nil {
		return nil, nil
	}
	if view := an.records.Of(task).FanOut; view != nil {
		return view, nil
	}
	view := &historyv1.FanOutView{Count: counts.GetCount(), Completed: counts.GetCompleted(), Failed: counts.GetCount() - counts.GetCompleted()}
	collected, err := an.collect(task)
	if errors.Is(err, calls.ErrInterrupted) {
		return nil, err
	}
	view.Outputs, view.Error = collected.GetOutputs(), collected.GetError()
	if err != nil {
		view.Error = err.Error()
	}
	if v1.IsTaskTerminal(an.core.Task(task).State) {
		an.records.At(task).FanOut = view
	}
	return view, nil
}

// collect returns the outputs of a task's instances as a list, or why there is no list. It returns nil if all completed without
// output.
func (an *ancestry) collect(task int) (*historyv1.FanOutView, error) {
	first, count := an.core.Instances(task)
	from, _, _, _ := an.core.Expansion(task)
	req := &historyv1.CollectRequest{
		RunId: an.id, Chain: an.chain, Generation: an.in.GetGeneration(), Task: an.graph.Name(task), From: int32(from),
		Items: make([]*historyv1.CollectItem, count), Stored: an.in.GetPartition() != nil,
	}
	some := an.fanOuts.AddOutputs(req, task)
	for k := range req.Items {
		state := an.core.Task(first + k).State
		item := &historyv1.CollectItem{State: state}
		if v1.IsTaskSuccess(state) {
			own := an.records.Of(first + k)
			if item.Record = own.ResultKey; item.Record == "" {
				item.Output = own.Result().GetOutput()
			}
			some = some || item.Record != "" || len(item.Output.GetFields()) > 0
		}
		req.Items[k] = item
	}
	if !some && an.core.InstanceCounts(task)[v1.TaskCompleted] == count {
		return nil, nil
	}
	var res historyv1.FanOutView
	if err := an.calls.MustNow("collect the outputs of "+req.Task, names.CollectActivity, &res, req); err != nil {
		return nil, err
	}
	return &res, nil
}

// parentOutput returns what a task sees of a parent's output: the output itself if it is small, else its record in the store.
// It returns nil if there is no output. The only error is calls.ErrInterrupted.
func (an *ancestry) parentOutput(i int) (*historyv1.ParentOutput, error) {
	out := &historyv1.ParentOutput{Task: an.graph.Name(i)}
	var err error
	if out.FanOut, err = an.fanOutView(i); err != nil || out.FanOut != nil {
		return out, err
	}
	own := an.records.Of(i)
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
func (an *ancestry) parentOutputs(i int) (all []*historyv1.ParentOutput, err error) {
	for _, p := range an.graph.Parents(i) {
		output, err := an.parentOutput(p)
		if err != nil {
			return nil, err
		}
		if output != nil {
			all = append(all, output)
		}
	}
	return all, nil
}
