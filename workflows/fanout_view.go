package workflows

import (
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/names"
)

// fanOutView is what others see of the instances of a task that has ended; nil
// where it has none. Their outputs are gathered when somebody first asks.
func (r *run) fanOutView(task int) *v1.FanOutView {
	f := r.board.fan(task)
	if f == nil {
		return nil
	}
	if f.view != nil {
		return f.view
	}
	view := &v1.FanOutView{Count: int32(f.total)}
	//workflowcheck:ignore (sums do not depend on the order)
	for state, n := range f.counts {
		switch state {
		case dag.StateCompleted, dag.StateStopped:
			view.Completed += n
		}
	}
	view.Failed = view.Count - view.Completed
	view.Outputs, view.Error = r.collect(task, f)
	if dag.Terminal(r.core.Task(task).State) {
		f.view = view
	}
	return view
}

// collect has the outputs of the instances of a task made into a list; nil: all
// are empty, or they cannot be told, and then it says why.
func (r *run) collect(task int, f *fan) (*v1.Items, string) {
	req := &v1.CollectRequest{
		RunId: r.id, Chain: r.chain, Generation: r.in.GetGeneration(), Task: r.graph.Name(task), From: int32(f.from),
		Items: make([]*v1.CollectItem, f.count), Stored: r.in.GetPart() != nil,
	}
	some := r.addParts(req, task)
	for k := range req.Items {
		e := &r.board.entries[f.first+k]
		item := &v1.CollectItem{Missing: e.state != dag.StateCompleted && e.state != dag.StateStopped}
		if !item.Missing {
			if item.Record = e.record; item.Record == "" {
				item.Output = e.result.GetOutput()
			}
			some = some || item.Record != "" || len(item.Output.GetFields()) > 0
		}
		req.Items[k] = item
	}
	if !some && f.counts[dag.StateCompleted]+f.counts[dag.StateStopped] == int32(max(f.count, len(req.Parts))) {
		return nil, ""
	}
	var res v1.FanOutView
	if err := r.mustNow("collect the outputs of "+req.Task, names.CollectActivity, &res, req); err != nil {
		return nil, err.Error()
	}
	return res.GetOutputs(), res.GetError()
}

// parentOutput is what a task sees of a parent's output: the output itself when
// it is small, else where it is stored. Nil when there is none.
func (r *run) parentOutput(i int) *v1.ParentOutput {
	out := &v1.ParentOutput{Task: r.graph.Name(i)}
	if out.FanOut = r.fanOutView(i); out.FanOut != nil {
		return out
	}
	result, record := r.board.result(i)
	switch output := result.GetOutput(); {
	case record != "":
		out.Record = record
	case len(output.GetFields()) == 0:
		return nil
	default:
		out.Output = output
	}
	return out
}
