package dataflow

import (
	"slices"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
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
		own, rec := d.records.Of(i), d.endOf(i)
		d.views[name] = &historyv1.ParentView{
			State: rec.State, Result: own.Result(), Record: own.ResultKey, FanOut: fanOut, Reason: rec.Reason, Error: dag.OneLine(rec.Error),
			Finally: d.graph.IsFinally(i),
		}
	}
	return nil
}

// addParents adds what a task sees of the outputs of its parents: an output itself if it is small, else its record in the store. In
// `finally`, the tasks that its expressions name count as parents, too.
func (d *Draft) addParents(task int) *Call {
	for parents := d.parentsOf(task); d.next < len(parents); d.next++ {
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

// parentsOf returns the tasks of which a task sees the outputs.
func (s *State) parentsOf(task int) []int {
	parents := s.graph.Parents(task)
	if !s.graph.IsFinally(task) {
		return parents
	}
	named := []int{}
	refs := s.Input.GetReferences()[s.graph.Name(task)]
	for _, name := range slices.Concat(refs.GetTasks(), refs.GetFanOut(), refs.GetCache(), refs.GetTemplates()) {
		if i, ok := s.graph.Index(name); ok && !s.graph.IsFinally(i) {
			named = append(named, i)
		}
	}
	slices.Sort(named)
	return append(slices.Compact(named), parents...)
}

// endOf returns the record of a task that others see. A task that has not ended when `finally` begins was cancelled, and its node is
// silent.
func (s *State) endOf(i int) dag.Record {
	rec := s.core.Task(i)
	if !v1.IsTaskTerminal(rec.State) && s.core.InFinally() && !s.core.IsFinally(i) {
		rec.State, rec.Reason, rec.Error = v1.TaskCancelled, v1.ReasonNodeSilent, s.flight.SilenceOf(i)
	}
	return rec
}

// runView returns the outcome of the run's tasks for those of `finally`, or nil before `finally` has begun. It leaves out the input, which
// they see anyway.
func (s *State) runView() *historyv1.RunView {
	if part := s.Input.GetPartition(); part != nil || !s.core.InFinally() {
		return part.GetRunView()
	}
	end := s.core.TasksEnd()
	in := s.Input
	view := &historyv1.RunView{
		Id: s.RunID, Name: in.GetDefinition().GetName(), State: end.State, Reason: end.Reason, Error: end.Error,
		Generation: in.GetGeneration(), SubmittedBy: s.commands.SubmittedBy, Batch: in.GetBatch(), Trigger: s.Trigger,
	}
	for _, i := range s.core.Failed() {
		view.Failed = append(view.Failed, s.graph.Name(i))
	}
	return view
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

// Outputs returns the outputs of a task's instances as a list, or why there is no list, or nil if all completed without output and artifacts.
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

// collectRequest returns the request that makes a list of the outputs of a task's instances, or nil if all completed without output and
// artifacts.
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
			item.Artifacts = own.Result().GetArtifacts()
			some = some || item.Record != "" || len(item.Output.GetFields()) > 0 || len(item.Artifacts) > 0
		}
		req.Items[k] = item
	}
	if !some && s.core.InstanceCounts(task)[v1.TaskCompleted] == count {
		return nil
	}
	return req
}
