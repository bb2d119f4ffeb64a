package tui

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// maxInstances is how many instances of a task a Status keeps, those with the
// least numbers. Other instances appear only in the counts of their task.
const maxInstances = 1000

// maxFailedRows is how many failed instances of a task are listed below it.
const maxFailedRows = 10

// IsFannedOut reports whether a task is known to have been fanned out.
func IsFannedOut(t *v1.Task) bool { return t.Count != nil }

// instances are the known instances of one task, by number.
type instances map[int32]*v1.Instance

// mergeInstances applies the instances in a message about a task, and returns the
// changes that people should see.
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
		task := InstanceTask(t, i)
		changes = append(changes, Change{
			Name: names.InstanceName(name, int(i.GetIndex())), Task: task, At: changedAt(task), Of: name, Index: int(i.GetIndex()),
		})
	}
	return changes
}

// IsWaiting reports whether a task has fanned out and none of its instances gets a node.
func IsWaiting(t *v1.Task) bool {
	return IsFannedOut(t) && !v1.HasTaskEnded(t) && t.GetError() != ""
}

// waitsFor is why the instances of a task wait for a node, as long as none has
// one; "" otherwise.
func (b *Status) waitsFor(name string) string {
	t := b.tasks[name]
	if !IsFannedOut(t) || v1.HasTaskEnded(t) || t.GetCounts()[v1.TaskRunning]+t.GetCounts()[v1.TaskAssigned] > 0 {
		return ""
	}
	for _, index := range slices.Sorted(maps.Keys(b.instances[name])) {
		if i := b.instances[name][index]; i.GetState() == v1.TaskQueued && i.GetScheduledAfter() == nil && i.GetError() != "" {
			return i.GetError()
		}
	}
	return ""
}

// InstanceTask is an instance as the task that it would be by itself.
func InstanceTask(t *v1.Task, i *v1.Instance) *v1.Task {
	return &v1.Task{
		State: i.GetState(), Reason: i.GetReason(), Type: t.GetType(), Node: i.GetNode(), Attempt: i.GetAttempt(), Error: i.GetError(),
		Result: i.GetResult(), DependsOn: t.GetDependsOn(), AssignedAt: i.GetAssignedAt(), StartedAt: i.GetStartedAt(),
		CompletedAt: i.GetCompletedAt(), ScheduledAfter: i.GetScheduledAfter(), Attempts: i.GetAttempts(), Suspicions: i.GetSuspicions(),
		CachedFrom: i.GetCachedFrom(), ChildRun: i.GetChildRun(), Held: i.GetHeld(),
		CreatedAt: i.GetCreatedAt(), QueuedAt: i.GetQueuedAt(), DeadLetteredAt: i.GetDeadLetteredAt(), Notice: i.GetNotice(),
	}
}

// failed returns the instances of a task that have ended as failures, by number.
func (b *Status) failed(name string) []*v1.Instance {
	var failed []*v1.Instance
	for _, index := range slices.Sorted(maps.Keys(b.instances[name])) {
		if i := b.instances[name][index]; v1.HasTaskFailed(i) {
			failed = append(failed, i)
		}
	}
	return failed
}

// Tally says how far the instances of a fanned-out task are: "37/100 done, 4
// running, 1 failed". Done are those that completed.
func Tally(t *v1.Task) string {
	done, running, failures, paused, away := 0, 0, 0, 0, 0
	for state, n := range t.GetCounts() {
		switch {
		case v1.IsTaskSuccess(state):
			done += int(n)
		case state == v1.TaskRunning:
			running += int(n)
		case state == v1.TaskPaused:
			paused += int(n)
		case state == v1.TaskLost && v1.Lasts(t.GetType()) && !v1.HasTaskEnded(t):
			away += int(n)
		case v1.IsTaskFailure(state):
			failures += int(n)
		}
	}
	text := fmt.Sprintf("%d/%d done", done, t.GetCount())
	for _, part := range []struct {
		n    int
		word string
	}{
		{running, "running"},
		{paused, "paused"},
		{away, "lost"},
		{failures, "failed"},
		{int(t.GetCounts()[v1.TaskSkipped]), "skipped"},
		{int(t.GetCounts()[v1.TaskCancelled]), "cancelled"},
	} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.word)
		}
	}
	return text
}

// failedRows lists the failed instances of a task for a table, at most most of
// them, with a last row that counts the others.
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
		rows = append(rows, rowOf("  "+names.InstanceName(name, int(i.GetIndex())), InstanceTask(b.tasks[name], i), now))
	}
	if more := len(failed) - len(shown); more > 0 {
		rows = append(rows, row{name: fmt.Sprintf("  and %d more", more)})
	}
	return rows
}
