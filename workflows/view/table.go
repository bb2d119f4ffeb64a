package view

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
)

// table holds the tasks first and then the instances, under the same indices as the core.
type table struct {
	log      *eventlog.Log // of the run
	graph    *dag.Graph
	units    *flight.State
	records  *flight.Records
	revision int64 // of the newest change
	total    int   // instances of the whole task if this is a partition of it, or 0
	entries  []entry
	order    order
}

// newTable returns the tasks of a run that is about to begin.
func newTable(in *historyv1.RunInput, graph *dag.Graph, units *flight.State, records *flight.Records, log *eventlog.Log) *table {
	t := &table{
		log: log, graph: graph, units: units, records: records, total: int(in.GetPartition().GetCount()),
		entries: make([]entry, 0, graph.Len()), order: newOrder(),
	}
	for range graph.Len() {
		t.add(-1, -1)
	}
	return t
}

// entry is one task or instance.
type entry struct {
	group, number int32 // task of the instance and its number; -1 for a task

	state, reason, text, node string // from the core; text is what went wrong
	attempt, claim            int32

	assignedAt, startedAt, completedAt, scheduledAfter *timestamppb.Timestamp
	attempts                                           []*v1.Attempt
	lead                                               int32 // number of the first instance of its batch, or -1 if it is in no batch

	why     string          // why the newest dispatch went to its node; for an approval, its message
	place   []eventlog.Fact // facts of the newest dispatch, until the event of its assignment is logged
	ended   *v1.Attempt     // ended dispatch, until the core has processed it
	extras  *extras         // nil if the task has none of them
	counted string          // the state under which the counts of the task have this instance

	revision int64
}

// add appends the entry of a pending task or, if group is not negative, of an instance of that task.
func (t *table) add(group, number int) {
	i := len(t.entries)
	t.entries = append(t.entries, entry{
		group: int32(group), number: int32(number), lead: -1, state: v1.TaskPending, counted: v1.TaskPending,
	})
	if group >= 0 {
		f := t.fanOut(group)
		if f == nil {
			f = &fanOut{first: i, from: number, total: t.total, counts: map[string]int32{}}
			t.extrasOf(group).fanOut = f
		}
		f.count++
		f.total = max(f.total, f.count)
		f.counts[v1.TaskPending]++
	}
	t.Touch(i)
}

// AddInstances adds the instances of the core that the status does not have yet.
func (t *table) AddInstances(core *dag.State) {
	for i := len(t.entries); i < core.Len(); i++ {
		t.add(core.Group(i), core.Number(i))
	}
}

// taskOf returns the task of instance i, or i itself if it is a task.
func (t *table) taskOf(i int) int {
	if g := t.entries[i].group; g >= 0 {
		return int(g)
	}
	return i
}

// name returns the name of a task, or of an instance, such as "each[3]".
func (t *table) name(i int) string {
	e := &t.entries[i]
	if e.group < 0 {
		return t.graph.Name(i)
	}
	return names.InstanceName(t.graph.Name(int(e.group)), int(e.number))
}

func (t *table) definition(i int) *v1.TaskDefinition { return t.graph.Definition(t.taskOf(i)) }

// Touch gives task i the newest revision. For an instance that is not shown, it gives the task the revision, because the counts
// of the task change.
func (t *table) Touch(i int) {
	if e := &t.entries[i]; e.group >= 0 && e.number >= shownInstances {
		i = int(e.group)
	}
	t.revision++
	t.entries[i].revision = t.revision
	t.order.toEnd(i)
}

// change modifies the entry of task i and gives it the newest revision.
func (t *table) change(i int, f func(*entry)) {
	f(&t.entries[i])
	t.Touch(i)
}
