package view

import (
	"maps"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// extras holds the fields that only few tasks have.
type extras struct {
	fanOut    *fanOut // nil if it has no instances yet
	steeredBy string  // who requeued, cancelled or killed it, until that event is logged
	// agentEvents are the events of the ended dispatch, until they are logged.
	agentEvents []*historyv1.AgentEvent
}

// fanOut describes the instances of a task.
type fanOut struct {
	first, from, count int                    // index of the first instance, its number, and the number of instances
	total              int                    // instances of the whole task; more than count in a partition
	createdAt          *timestamppb.Timestamp // nil until the task runs
	counts             map[string]int32       // instances in each state, as people see it
}

// extrasOf returns the rarely used fields of task i, for modification.
func (t *table) extrasOf(i int) *extras {
	e := &t.entries[i]
	if e.extras == nil {
		e.extras = &extras{}
	}
	return e.extras
}

// SetSteeredBy records who requeues, cancels or kills task i, for the event of that.
func (t *table) SetSteeredBy(i int, who string) { t.extrasOf(i).steeredBy = who }

// SetCounts shows how many instances task i has, which other workflows run, and how many of them are in each state.
func (t *table) SetCounts(i, total int, counts map[string]int32) {
	f := t.fanOut(i)
	if f == nil {
		f = &fanOut{}
		t.extrasOf(i).fanOut = f
	}
	f.total, f.counts = total, counts
	t.Touch(i)
}

// ShownCounts returns how many instances of task i are in each state, as people see it.
func (t *table) ShownCounts(i int) map[string]int32 {
	if f := t.fanOut(i); f != nil {
		return maps.Clone(f.counts)
	}
	return nil
}

// fanOut returns the description of task i's instances, or nil if it has none yet.
func (t *table) fanOut(i int) *fanOut {
	if m := t.entries[i].extras; m != nil {
		return m.fanOut
	}
	return nil
}
