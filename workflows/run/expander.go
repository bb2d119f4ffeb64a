package run

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// expand determines the number of a task's instances: at once if the definition has the number or the list, otherwise with this
// round's evaluation.
func (r *run) expand(i int) {
	def, part := r.core.Definition(i), r.in.GetPartition()
	parallel, foreach := def.GetParallel(), def.GetForeach()
	counted := func(a *historyv1.ConditionAnswer) {
		r.setItems(i, a.GetItems())
		r.expanded(i, int(a.GetCount()), a.GetError(), a.GetBroken())
	}
	switch {
	case r.records.Of(i).Held:
		r.unexpanded[i] = true
	case r.fanOuts.RequeuedCount(i) > 0: // it keeps its list
		r.spread(r.fanOuts.Expand(i, r.fanOuts.RequeuedCount(i)))
	case part != nil:
		r.setItems(i, part.GetItems())
		r.raise(dag.Expanded{Task: i, From: int(part.GetFrom()), Count: int(part.GetTo() - part.GetFrom())})
	case foreach.GetListValue() != nil:
		r.expanded(i, len(foreach.GetListValue().GetValues()), "", false)
	case foreach != nil:
		r.ask(question{task: i, kind: asksItems, answered: counted})
	case parallel.GetStringValue() != "":
		r.ask(question{task: i, kind: asksCount, answered: counted})
	default:
		r.expanded(i, int(parallel.GetNumberValue()), "", false)
	}
}

// setItems records the evaluated list of a foreach.
func (r *run) setItems(i int, items *historyv1.Items) {
	if items != nil {
		r.records.At(i).Items = items
	}
}

// release expands a task that fans out and is no longer held.
func (r *run) release(i int) {
	if r.unexpanded[i] {
		delete(r.unexpanded, i)
		if r.core.Task(i).State == v1.TaskPending { // it may have ended meanwhile
			r.expand(i)
		}
	}
}

// expanded reports the number of a task's instances to the core.
func (r *run) expanded(i, count int, text string, broken bool) {
	if text == "" && r.fanOuts.IsLarge(r.core.Definition(i), count) {
		r.spread(r.fanOuts.Expand(i, count))
		return
	}
	r.raise(dag.Expanded{Task: i, Count: count, Err: text, Broken: broken})
}
