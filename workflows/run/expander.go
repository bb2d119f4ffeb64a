package run

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// expander determines how many instances a task has. It owns the fan-outs that are held.
type expander struct {
	*execution
	evaluator asker

	unexpanded map[int]bool // held tasks that fan out
}

// expand determines the number of a task's instances: at once if the definition has the number or the list, otherwise with this
// round's evaluation.
func (ex *expander) expand(i int) {
	def, part := ex.core.Definition(i), ex.in.GetPartition()
	parallel, foreach := def.GetParallel(), def.GetForeach()
	counted := func(a *historyv1.ConditionAnswer) {
		ex.setItems(i, a.GetItems())
		ex.expanded(i, int(a.GetCount()), a.GetError(), a.GetBroken())
	}
	switch {
	case ex.records.Of(i).Held:
		ex.unexpanded[i] = true
	case ex.fanOuts.RequeuedCount(i) > 0: // it keeps its list
		ex.spread(ex.fanOuts.Expand(i, ex.fanOuts.RequeuedCount(i)))
	case part != nil:
		ex.setItems(i, part.GetItems())
		ex.raise(dag.Expanded{Task: i, From: int(part.GetFrom()), Count: int(part.GetTo() - part.GetFrom())})
	case foreach.GetListValue() != nil:
		ex.expanded(i, len(foreach.GetListValue().GetValues()), "", false)
	case foreach != nil:
		ex.evaluator.ask(question{task: i, kind: asksItems, answered: counted})
	case parallel.GetStringValue() != "":
		ex.evaluator.ask(question{task: i, kind: asksCount, answered: counted})
	default:
		ex.expanded(i, int(parallel.GetNumberValue()), "", false)
	}
}

// setItems records the evaluated list of a foreach.
func (ex *expander) setItems(i int, items *historyv1.Items) {
	if items != nil {
		ex.records.At(i).Items = items
	}
}

// release expands a task that fans out and is no longer held.
func (ex *expander) release(i int) {
	if ex.unexpanded[i] {
		delete(ex.unexpanded, i)
		if ex.core.Task(i).State == v1.TaskPending { // it may have ended meanwhile
			ex.expand(i)
		}
	}
}

// expanded reports the number of a task's instances to the core.
func (ex *expander) expanded(i, count int, text string, broken bool) {
	if text == "" && ex.fanOuts.IsLarge(ex.core.Definition(i), count) {
		ex.spread(ex.fanOuts.Expand(i, count))
		return
	}
	ex.raise(dag.Expanded{Task: i, Count: count, Err: text, Broken: broken})
}
