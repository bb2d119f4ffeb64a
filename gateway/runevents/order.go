package runevents

import (
	"cmp"
	"slices"
	"time"

	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// startedEvents returns the start events of running attempts, of one task or of all if only is "". It omits the starts in
// known.
func startedEvents(v *runview.View, only string, known []*v1.Event) []*v1.Event {
	type dispatch struct {
		task  string
		claim int32
	}
	told := map[dispatch]bool{}
	for _, e := range known {
		if e.GetEvent() == v1.EventStarted {
			told[dispatch{e.GetTask(), e.GetClaim()}] = true
		}
	}
	var events []*v1.Event
	add := func(name string, claim int32, task interface {
		GetState() string
		GetNode() string
		GetAttempt() int32
	}) {
		r, runs := v.Running[names.AttemptID(name, claim)]
		if !runs || task.GetState() != v1.TaskRunning || told[dispatch{name, claim}] {
			return
		}
		events = append(events, &v1.Event{
			At: r.Started, Task: name, Event: v1.EventStarted, Node: task.GetNode(), Attempt: task.GetAttempt(), Claim: claim,
		})
	}
	for _, name := range v.Names {
		t := v.Tasks[name]
		of, index, instance := names.ParseInstanceName(only)
		if only == "" || only == name {
			add(name, t.Claim, t.Brief)
		} else if !instance || of != name {
			continue
		}
		for _, i := range t.Instances {
			if i != nil && (!instance || int(i.Instance.GetIndex()) == index) {
				add(names.InstanceName(name, int(i.Instance.GetIndex())), i.Claim, i.Brief)
			}
		}
	}
	return events
}

// sortByTime sorts events by time. The workflow learns of what happens to an attempt on its node only at the end of the attempt,
// so these events move past what the run observed meanwhile. Otherwise events of the same task, and of the run itself, keep
// their order, because clocks of nodes differ. No event moves past the beginning or end of a generation.
func sortByTime(events []*v1.Event) []*v1.Event {
	type placed struct {
		event *v1.Event
		at    time.Time
	}
	all := make([]placed, len(events))
	tasks := map[string]*taskOrder{} // the run itself is ""
	var newest, bound time.Time
	for i, e := range events {
		if tasks[e.GetTask()] == nil {
			tasks[e.GetTask()] = &taskOrder{}
		}
		at := tasks[e.GetTask()].place(e, bound)
		if boundsGeneration(e) {
			at = later(at, newest)
			bound = at
		}
		newest = later(newest, at)
		all[i] = placed{e, at}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	sorted := make([]*v1.Event, len(all))
	for i, p := range all {
		sorted[i] = p.event
	}
	return sorted
}

// taskOrder holds the times of the newest events of a task.
type taskOrder struct {
	dispatched time.Time // of the dispatch of the current attempt
	onNode     time.Time // of what happened on the node of an attempt
	any        time.Time
}

// place returns the time by which an event is sorted: its own, or that of the event that it must follow.
func (o *taskOrder) place(e *v1.Event, bound time.Time) time.Time {
	at := later(e.GetAt().AsTime(), bound)
	if happensOnNode(e) {
		at = later(at, later(o.dispatched, o.onNode))
		o.onNode = at
	} else {
		at = later(at, o.any)
	}
	o.any = later(o.any, at)
	switch e.GetEvent() {
	case v1.EventQueued, v1.EventAssigned, v1.EventReassigned:
		o.dispatched = at
	}
	return at
}

// happensOnNode reports whether the time of an event is one that the node of an attempt has reported.
func happensOnNode(e *v1.Event) bool {
	switch e.GetEvent() {
	case v1.EventStarted, v1.EventTurn, v1.EventToolCall:
		return true
	case v1.EventCompleted, v1.EventFailed, v1.EventDeadLettered, v1.EventCancelled, v1.EventKilled:
		return e.GetNode() != ""
	}
	return false
}

// boundsGeneration reports whether an event begins or ends a generation of a run.
func boundsGeneration(e *v1.Event) bool {
	return e.GetTask() == "" && (e.GetEvent() == v1.EventSubmitted || v1.IsRunTerminal(e.GetEvent()))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
