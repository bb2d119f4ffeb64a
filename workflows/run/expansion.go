package run

import (
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/workflows/dag"
)

// expand has the instances of a task counted: at once where the definition has
// the number or the list, else in the call of the round.
func (r *run) expand(i int) {
	def, part := r.core.Definition(i), r.in.GetPart()
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

// expanded reports to the core how many instances a task has.
func (r *run) expanded(i, count int, text string, broken bool) {
	if text == "" && r.isLarge(i, count) {
		r.expandLarge(i, count)
		return
	}
	r.events = append(r.events, dag.Expanded{Task: i, Count: count, Err: text, Broken: broken})
}

// item is the item of a foreach that instance i is for: itself, or the key of the
// stored list that it is in. Without a foreach there is neither.
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
