package tasklist

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// maxExamples is the number of tasks that a group names.
	maxExamples = 5
	// sampledInstances bounds the instances that are read from the partitions of a large fan-out.
	sampledInstances = 20
)

// waiters holds the tasks or instances of one task that wait for the same reason.
type waiters struct {
	wait
	count     int
	oldest    *timestamppb.Timestamp // when the first was queued, or nil
	notBefore *timestamppb.Timestamp // when the first is retried, or nil
	examples  []*v1.ListedTask       // those that have waited longest, oldest first
}

// isEarlier reports whether a is before b. A nil time is later than every other.
func isEarlier(a, b *timestamppb.Timestamp) bool {
	return a != nil && (b == nil || a.AsTime().Before(b.AsTime()))
}

// compareQueued orders tasks by the time at which they were queued.
func compareQueued(a, b *v1.ListedTask) int {
	switch {
	case isEarlier(a.GetQueuedAt(), b.GetQueuedAt()):
		return -1
	case isEarlier(b.GetQueuedAt(), a.GetQueuedAt()):
		return 1
	}
	return cmp.Or(cmp.Compare(a.GetRun(), b.GetRun()), cmp.Compare(a.GetTask(), b.GetTask()))
}

// addExamples adds tasks to the examples of a group, and keeps those that have waited longest.
func addExamples(examples []*v1.ListedTask, more ...*v1.ListedTask) []*v1.ListedTask {
	examples = append(examples, more...)
	slices.SortFunc(examples, compareQueued)
	return examples[:min(len(examples), maxExamples)]
}

// taskQueue collects the waiting instances of one task of a run.
type taskQueue struct {
	view    *runview.View
	name    string
	needs   taskNeeds
	now     time.Time
	waits   []*waiters
	unknown *waiters // waiters without a known reason
}

// queueOf returns the waiting part of a task, or nil if nothing waits. It has the reasons of instances in the run itself. For a
// large fan-out it samples the partitions, starting after the instances that have already started.
func (l *Lister) queueOf(ctx context.Context, v *runview.View, name string, needs taskNeeds, now time.Time) (*taskQueue, error) {
	q := &taskQueue{view: v, name: name, needs: needs, now: now}
	t := v.Tasks[name]
	if t.Task.GetCount() == 0 {
		if t.Brief.GetState() != v1.TaskQueued {
			return nil, nil
		}
		q.add(name, t.Brief)
		return q.settle(0), nil
	}
	queued := int(t.Brief.GetCounts()[v1.TaskQueued])
	if queued == 0 {
		return nil, nil
	}
	instances, begun := t.Instances, 0
	if len(instances) < int(t.Task.GetCount()) {
		for state, n := range t.Brief.GetCounts() {
			if !v1.IsTaskWaiting(state) {
				begun += int(n)
			}
		}
		some, err := l.runs.Instances(ctx, v, name, begun, sampledInstances)
		if err != nil {
			return nil, err
		}
		instances = some
	}
	for _, i := range instances {
		if i != nil && i.Brief.GetState() == v1.TaskQueued {
			q.add(names.InstanceName(name, int(i.Instance.GetIndex())), i.Brief)
		}
	}
	return q.settle(queued), nil
}

// add counts a queued task or instance among those that wait for the same reason.
func (q *taskQueue) add(name string, t attempted) {
	why := waitOf(q.view, q.view.Tasks[q.name].Brief, t, q.now)
	w := q.waitersFor(why)
	w.count++
	if isEarlier(t.GetQueuedAt(), w.oldest) {
		w.oldest = t.GetQueuedAt()
	}
	if at := t.GetScheduledAfter(); isBackingOff(t, q.now) && isEarlier(at, w.notBefore) {
		w.notBefore = at
	}
	if last := len(w.examples) - 1; last < maxExamples-1 || isEarlier(t.GetQueuedAt(), w.examples[last].GetQueuedAt()) {
		w.examples = addExamples(w.examples, listed(q.view, q.name, name, t, &q.needs, q.now))
	}
}

func (q *taskQueue) waitersFor(why wait) *waiters {
	if why.text == "" {
		if q.unknown == nil {
			q.unknown = &waiters{wait: wait{why.reason, unknownText}}
		}
		return q.unknown
	}
	for _, w := range q.waits {
		if w.wait == why {
			return w
		}
	}
	w := &waiters{wait: why}
	q.waits = append(q.waits, w)
	return w
}

// settle returns the queue with at least queued waiting instances. Instances without a known reason get the most frequent
// reason of their task, because the placement queue explains only the first of many similar requests.
func (q *taskQueue) settle(queued int) *taskQueue {
	counted := 0
	for _, w := range q.waits {
		counted += w.count
	}
	if q.unknown != nil {
		counted += q.unknown.count
	}
	if missing := queued - counted; missing > 0 {
		q.waitersFor(wait{reason: v1.WaitAsking}).count += missing
	}
	if q.unknown == nil {
		return q
	}
	if len(q.waits) == 0 {
		q.waits = []*waiters{q.unknown}
		return q
	}
	most := slices.MaxFunc(q.waits, func(a, b *waiters) int { return cmp.Compare(a.count, b.count) })
	most.count += q.unknown.count
	most.examples = addExamples(most.examples, q.unknown.examples...)
	if isEarlier(q.unknown.oldest, most.oldest) {
		most.oldest = q.unknown.oldest
	}
	return q
}
