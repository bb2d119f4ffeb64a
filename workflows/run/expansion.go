package run

import (
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/workflows/dag"
)

// expand determines the number of a task's instances: at once if the definition has the number or the list, otherwise with this
// round's evaluation.
func (r *run) expand(i int) {
	def, part := r.core.Definition(i), r.in.GetPartition()
	parallel, foreach := def.GetParallel(), def.GetForeach()
	switch m := r.partitionedOf(i); {
	case r.status.IsHeld(i):
		r.unexpanded[i] = true
	case m != nil && len(m.requeued) > 0: // it keeps its list
		r.expandLarge(i, m.total)
	case part != nil:
		r.status.SetItems(i, part.GetItems())
		r.events = append(r.events, dag.Expanded{Task: i, From: int(part.GetFrom()), Count: int(part.GetTo() - part.GetFrom())})
	case foreach.GetListValue() != nil:
		r.expanded(i, len(foreach.GetListValue().GetValues()), "", false)
	case foreach != nil:
		r.ask(question{task: i, kind: asksItems})
	case parallel.GetStringValue() != "":
		r.ask(question{task: i, kind: asksCount})
	default:
		r.expanded(i, int(parallel.GetNumberValue()), "", false)
	}
}

// expanded reports the number of a task's instances to the core.
func (r *run) expanded(i, count int, text string, broken bool) {
	if text == "" && r.isLarge(i, count) {
		r.expandLarge(i, count)
		return
	}
	r.events = append(r.events, dag.Expanded{Task: i, Count: count, Err: text, Broken: broken})
}

// item returns the foreach item of instance i, or the key of the stored list that holds the item. It returns neither if the
// task has no foreach.
func (r *run) item(i int) (item *structpb.Value, stored string) {
	task, number := r.core.Group(i), r.core.Number(i)
	list := r.core.Definition(i).GetForeach().GetListValue()
	if items := r.status.Items(task); items != nil {
		if items.GetKey() != "" {
			return nil, items.GetKey()
		}
		list = items.GetList()
	}
	if number < len(list.GetValues()) {
		return list.GetValues()[number], ""
	}
	return nil, ""
}
