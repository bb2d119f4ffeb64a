package tasklist

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// instancesAtOnce is the number of instances that are read at once.
const instancesAtOnce = 1000

// page collects the tasks of one response.
type page struct {
	filter       *v1.ListTasksRequest
	room, search int // how many more tasks the page may hold and how many more instances it may read
	items        []*v1.ListedTask
	warnings     []string
	now          time.Time
}

// attempted is the common part of tasks and instances.
type attempted interface {
	GetState() string
	GetReason() string
	GetNode() string
	GetAttempt() int32
	GetError() string
	GetResult() *v1.TaskResult
	GetStartedAt() *timestamppb.Timestamp
	GetCompletedAt() *timestamppb.Timestamp
	GetQueuedAt() *timestamppb.Timestamp
	GetScheduledAfter() *timestamppb.Timestamp
	GetHeld() bool
}

// matches reports whether a task or instance matches the filters for state and node. The caller has checked the type.
func (p *page) matches(t attempted) bool {
	return (p.filter.GetState() == "" || t.GetState() == p.filter.GetState()) && (p.filter.GetNode() == "" || t.GetNode() == p.filter.GetNode())
}

// listed returns a task or instance as lists show it. needs are those of a queued task, or nil if they are not known.
func listed(v *runview.View, task, name string, t attempted, needs *taskNeeds, now time.Time) *v1.ListedTask {
	of := v.Tasks[task]
	item := &v1.ListedTask{
		Run: v.Run.GetId(), Workflow: v.Run.GetName(), Task: name, Type: of.Task.GetType(), State: t.GetState(), Reason: t.GetReason(),
		Node: t.GetNode(), Attempt: t.GetAttempt(), StartedAt: t.GetStartedAt(), CompletedAt: t.GetCompletedAt(), Error: t.GetError(),
		QueuedAt: t.GetQueuedAt(),
	}
	if result := t.GetResult(); result != nil {
		item.ExitCode = proto.Int32(result.GetExitCode())
	}
	if t.GetState() != v1.TaskQueued {
		return item
	}
	item.Reason = waitOf(v, of.Brief, t, now).reason
	if isBackingOff(t, now) {
		item.NotBefore = t.GetScheduledAfter()
	}
	if needs != nil {
		item.Priority, item.Demand = &needs.priority, needs.demand
	}
	return item
}

// add adds a task or instance to a page.
func (l *Lister) add(ctx context.Context, page *page, v *runview.View, task, name string, t attempted) {
	var needs *taskNeeds
	if t.GetState() == v1.TaskQueued {
		// If the definition cannot be read, the item lacks the needs.
		if all, err := l.needs.get(ctx, v.Run.GetId()); err == nil {
			if of, known := all[task]; known {
				needs = &of
			}
		}
	}
	page.items = append(page.items, listed(v, task, name, t, needs, page.now))
	page.room--
}

// readRun adds the tasks of a run from a place on, by name, with instances in place of fanned-out tasks. It returns the place
// of the first item without room on the page, or nil.
func (l *Lister) readRun(ctx context.Context, page *page, v *runview.View, from place) (*place, error) {
	first, _ := slices.BinarySearch(v.Names, from.task)
	for _, name := range v.Names[first:] {
		t := v.Tasks[name]
		if kind := page.filter.GetType(); kind != "" && t.Task.GetType() != kind {
			continue
		}
		at := from
		if at.task != name {
			at.task, at.index = name, 0
		}
		if t.Task.GetCount() > 0 {
			next, err := l.readInstances(ctx, page, v, at)
			if next != nil || err != nil {
				return next, err
			}
			continue
		}
		if !page.matches(t.Brief) {
			continue
		}
		if page.room == 0 {
			return &at, nil
		}
		l.add(ctx, page, v, name, name, t.Brief)
	}
	return nil, nil
}

// readInstances adds the instances of a task from a place on. It returns the place of the first instance without room on the
// page, or nil.
func (l *Lister) readInstances(ctx context.Context, page *page, v *runview.View, at place) (*place, error) {
	t := v.Tasks[at.task]
	if !mayHave(t.Brief.GetCounts(), page.filter.GetState()) {
		return nil, nil
	}
	for at.index < int(t.Task.GetCount()) {
		if page.search == 0 {
			return &at, nil
		}
		some, err := l.runs.Instances(ctx, v, at.task, at.index, min(page.search, instancesAtOnce))
		if err != nil || len(some) == 0 {
			return nil, err
		}
		for _, i := range some {
			at.index = int(i.Instance.GetIndex())
			if page.matches(i.Brief) {
				if page.room == 0 {
					return &at, nil
				}
				l.add(ctx, page, v, at.task, names.InstanceName(at.task, at.index), i.Brief)
			}
			at.index++
		}
		page.search -= min(page.search, len(some))
	}
	return nil, nil
}

// mayHave reports whether there may be instances in a state, according to the counts of the run. The run does not always know
// which of the assigned instances are running.
func mayHave(counts map[string]int32, state string) bool {
	switch state {
	case "":
		return true
	case v1.TaskRunning:
		return counts[v1.TaskRunning]+counts[v1.TaskAssigned] > 0
	}
	return counts[state] > 0
}
