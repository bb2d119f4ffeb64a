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

// sortByTime sorts events by time. Events of the same task, and of the run itself, keep their order, and no event moves
// past the beginning or end of a generation: clocks of nodes differ, and the workflow learns of the start of an attempt
// only at its end.
func sortByTime(events []*v1.Event) []*v1.Event {
	type placed struct {
		event *v1.Event
		at    time.Time
	}
	all := make([]placed, len(events))
	tasks := map[string]time.Time{} // time of each task's newest event; the run itself is ""
	var newest, bound time.Time
	for i, e := range events {
		at := later(e.GetAt().AsTime(), later(bound, tasks[e.GetTask()]))
		if boundsGeneration(e) {
			at = later(at, newest)
			bound = at
		}
		tasks[e.GetTask()], newest = at, later(newest, at)
		all[i] = placed{e, at}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	sorted := make([]*v1.Event, len(all))
	for i, p := range all {
		sorted[i] = p.event
	}
	return sorted
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
