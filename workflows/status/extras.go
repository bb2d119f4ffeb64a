package status

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

// Extras holds the fields that only few tasks have.
type Extras struct {
	silent     string // why its node counts as silent, or ""
	away       string // why it is lost until its node is back, or ""
	cachedFrom string // run whose result was reused
	ChildRun   string
	FanOut     *FanOut // nil if it has no instances yet
	SteeredBy  string  // who requeued, cancelled or killed it, until that event is logged
	// agentEvents are the events of the ended dispatch, until they are logged.
	agentEvents []*v1.AgentEvent
}

// FanOut describes the instances of a task.
type FanOut struct {
	First, From, Count int                    // index of the first instance, its number, and the number of instances
	Total              int                    // instances of the whole task; more than Count in a partition
	CreatedAt          *timestamppb.Timestamp // nil until the task runs
	Counts             map[string]int32
	View               *v1.FanOutView // what conditions see of it; set by the first that asks after the task has ended
}

// Extras returns the rarely used fields of task i, for modification.
func (t *table) Extras(i int) *Extras {
	e := &t.entries[i]
	if e.extras == nil {
		e.extras = &Extras{}
	}
	return e.extras
}

// FanOut returns the description of task i's instances, or nil if it has none yet.
func (t *table) FanOut(i int) *FanOut {
	if m := t.entries[i].extras; m != nil {
		return m.FanOut
	}
	return nil
}
