package dataflow

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// addViews adds the views of ancestors that expressions see.
func (d *Draft) addViews(ancestors []string) *Call {
	for _, name := range ancestors {
		if part := d.Input.GetPartition(); part != nil {
			d.views[name] = part.GetViews()[name]
			continue
		}
		i, ok := d.graph.Index(name)
		if !ok || d.views[name] != nil {
			continue
		}
		fanOut, call := d.fanOutView(i)
		if call != nil {
			return call
		}
		own := d.records.Of(i)
		d.views[name] = &historyv1.ParentView{State: d.core.Task(i).State, Result: own.Result(), Record: own.ResultKey, FanOut: fanOut}
	}
	return nil
}

// addParents adds what a task sees of the outputs of its parents: an output itself if it is small, else its record in the store.
func (d *Draft) addParents(task int) *Call {
	for parents := d.graph.Parents(task); d.next < len(parents); d.next++ {
		i := parents[d.next]
		fanOut, call := d.fanOutView(i)
		if call != nil {
			return call
		}
		out, own := &historyv1.ParentOutput{Task: d.graph.Name(i), FanOut: fanOut}, d.records.Of(i)
		switch output := own.Result().GetOutput(); {
		case fanOut != nil:
		case own.ResultKey != "":
			out.Record = own.ResultKey
		case len(output.GetFields()) == 0:
			continue
		default:
			out.Output = output
		}
		d.parents = append(d.parents, out)
	}
	return nil
}

// fanOutView returns what other tasks see of a task's instances, or nil if the task has none. The outputs of an ended task are
// collected once.
func (d *Draft) fanOutView(task int) (*historyv1.FanOutView, *Call) {
	counts, view := d.fanOutCounts(task), d.records.Of(task).FanOut
	if counts == nil || view != nil {
		return view, nil
	}
	outputs, call := d.Outputs(task)
	if call != nil {
		return nil, call
	}
	view = &historyv1.FanOutView{
		Count: counts.GetCount(), Completed: counts.GetCompleted(), Failed: counts.GetCount() - counts.GetCompleted(),
		Outputs: outputs.GetOutputs(), Error: outputs.GetError(),
	}
	if v1.IsTaskTerminal(d.core.Task(task).State) {
		d.records.At(task).FanOut = view
	}
	return view, nil
}

// Outputs returns the outputs of a task's instances as a list, or why there is no list, or nil if all completed without output.
func (d *Draft) Outputs(task int) (*historyv1.FanOutView, *Call) {
	if outputs := d.outputs; outputs != nil {
		d.outputs = nil
		return outputs, nil
	}
	req := d.collectRequest(task)
	if req == nil {
		return nil, nil
	}
	return nil, &Call{Summary: "collect the outputs of " + req.Task, Activity: names.CollectActivity, Args: []any{req}, Answer: &historyv1.FanOutView{}}
}

// collectRequest returns the request that makes a list of the outputs of a task's instances, or nil if all completed without output.
func (s *State) collectRequest(task int) *historyv1.CollectRequest {
	first, count := s.core.Instances(task)
	from, _, _, _ := s.core.Expansion(task)
	req := &historyv1.CollectRequest{
		RunId: s.RunID, Chain: s.Chain, Generation: s.Input.GetGeneration(), Task: s.graph.Name(task), From: int32(from),
		Items: make([]*historyv1.CollectItem, count), Stored: s.Input.GetPartition() != nil,
	}
	some := s.fanOuts.AddOutputs(req, task)
	for k := range req.Items {
		item := &historyv1.CollectItem{State: s.core.Task(first + k).State}
		if v1.IsTaskSuccess(item.State) {
			own := s.records.Of(first + k)
			if item.Record = own.ResultKey; item.Record == "" {
				item.Output = own.Result().GetOutput()
			}
			some = some || item.Record != "" || len(item.Output.GetFields()) > 0
		}
		req.Items[k] = item
	}
	if !some && s.core.InstanceCounts(task)[v1.TaskCompleted] == count {
		return nil
	}
	return req
}
