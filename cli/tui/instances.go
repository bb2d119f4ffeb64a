package tui

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// maxInstances is the most instances of a task that a Status keeps, those with the lowest indexes. Other instances
// appear only in the counts of their task.
const maxInstances = 1000

// maxFailedRows is the most failed instances of a task that are listed below it.
const maxFailedRows = 10

// instances holds the known instances of one task, by index.
type instances map[int32]*v1.Instance

// mergeInstances applies the instances in a message about a task, and returns the changes that are worth showing.
func (b *Status) mergeInstances(name string, t *v1.Task) []Change {
	if t.Count == nil {
		delete(b.instances, name)
		return nil
	}
	known := b.instances[name]
	if known == nil {
		known = instances{}
		b.instances[name] = known
	}
	var changes []Change
	for _, i := range t.GetInstances() {
		if i.GetIndex() >= maxInstances {
			continue
		}
		before, isKnown := known[i.GetIndex()]
		known[i.GetIndex()] = i
		if !isKnown {
			before = &v1.Instance{State: v1.TaskPending}
		}
		if before.GetState() == i.GetState() && before.GetNode() == i.GetNode() &&
			before.GetAttempt() == i.GetAttempt() && before.GetError() == i.GetError() {
			continue
		}
		task := v1.InstanceTask(t, i)
		changes = append(changes, Change{
			Name: names.InstanceName(name, int(i.GetIndex())), Task: task, At: changedAt(task), Of: name, Index: int(i.GetIndex()),
		})
	}
	return changes
}

// waitsFor returns why the instances of a task wait for a node, or "" once any of them has one.
func (b *Status) waitsFor(name string) string {
	t := b.tasks[name]
	if !words.IsFannedOut(t) || v1.HasTaskEnded(t) || t.GetCounts()[v1.TaskRunning]+t.GetCounts()[v1.TaskAssigned] > 0 {
		return ""
	}
	for _, index := range slices.Sorted(maps.Keys(b.instances[name])) {
		if i := b.instances[name][index]; i.GetState() == v1.TaskQueued && i.GetScheduledAfter() == nil && i.GetError() != "" {
			return i.GetError()
		}
	}
	return ""
}

// failed returns the failed instances of a task, ordered by index.
func (b *Status) failed(name string) []*v1.Instance {
	var failed []*v1.Instance
	for _, index := range slices.Sorted(maps.Keys(b.instances[name])) {
		if i := b.instances[name][index]; v1.HasTaskFailed(i) {
			failed = append(failed, i)
		}
	}
	return failed
}

// failedRows returns at most most table rows for the failed instances of a task. If there are more instances, the last
// row counts the others.
func (b *Status) failedRows(name string, now time.Time, most int) []row {
	if most <= 0 || len(b.instances[name]) == 0 {
		return nil
	}
	failed := b.failed(name)
	shown := failed[:min(len(failed), most)]
	if len(failed) > len(shown) {
		shown = shown[:most-1] // the last row is for the count
	}
	var rows []row
	for _, i := range shown {
		rows = append(rows, rowOf("  "+names.InstanceName(name, int(i.GetIndex())), v1.InstanceTask(b.tasks[name], i), now))
	}
	if more := len(failed) - len(shown); more > 0 {
		rows = append(rows, row{name: fmt.Sprintf("  and %d more", more)})
	}
	return rows
}
