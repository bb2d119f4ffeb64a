package tui

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// Status is the last known state of a run. It is not safe for concurrent use.
type Status struct {
	run   *v1.Run // without tasks
	tasks map[string]*v1.Task
	total int
	names []string // of the tasks, parents before children, or nil if they must be sorted again
	// instances holds the instances of fanned-out tasks, by task.
	instances map[string]instances
}

// NewStatus returns the status of a run of which only the ID is known.
func NewStatus(id string) *Status {
	return &Status{run: &v1.Run{Id: id, State: v1.RunPending}, tasks: map[string]*v1.Task{}, instances: map[string]instances{}}
}

// StatusOf returns the status of a run with all of its tasks.
func StatusOf(run *v1.Run) *Status {
	b := NewStatus(run.GetId())
	b.Apply(&v1.WatchRunResponse{Run: run, TaskCount: int32(len(run.GetTasks()))})
	return b
}

// Run returns the run without its tasks.
func (b *Status) Run() *v1.Run { return b.run }

// Ended reports whether the run has ended.
func (b *Status) Ended() bool { return v1.IsRunTerminal(b.run.GetState()) }

// Change is a task or instance with a new state, node, attempt, note or tally.
type Change struct {
	Name string // "each" or "each[3]"
	Task *v1.Task
	// At is the time of the change, or zero if unknown.
	At time.Time
	// Of is the task of an instance, or "" for a task. Index is the index of the instance.
	Of    string
	Index int
	// TallyOnly is true if only the counts of a fanned-out task have changed.
	TallyOnly bool
}

// Apply applies a message of a watch and returns the changes in the order of their times. Applying a message twice has
// no further effect. A message holds only the instances of a task that have changed.
func (b *Status) Apply(m *v1.WatchRunResponse) []Change {
	run := m.GetRun()
	if run.GetId() == "" {
		run.Id = b.run.GetId()
	}
	if run.GetGeneration() != b.run.GetGeneration() {
		clear(b.instances)
	}
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(run.GetTasks())) {
		task := run.GetTasks()[name]
		before, known := b.tasks[name]
		b.tasks[name] = task
		ofInstances := b.mergeInstances(name, task)
		if task.GetError() == "" {
			task.Error = b.waitsFor(name)
		}
		if !known {
			b.names = nil
			before = &v1.Task{State: v1.TaskPending}
		}
		if before.GetState() != task.GetState() || before.GetNode() != task.GetNode() ||
			before.GetAttempt() != task.GetAttempt() || before.GetError() != task.GetError() {
			changes = append(changes, Change{Name: name, Task: task, At: changedAt(task)})
		} else if before.GetCount() != task.GetCount() || !maps.Equal(before.GetCounts(), task.GetCounts()) {
			changes = append(changes, Change{Name: name, Task: task, TallyOnly: true})
		}
		changes = append(changes, ofInstances...)
	}
	b.run, b.total = runHeader(run), max(int(m.GetTaskCount()), len(b.tasks))
	if len(changes) > 1 {
		b.sort(changes)
	}
	return changes
}

func runHeader(run *v1.Run) *v1.Run {
	return &v1.Run{
		Id: run.GetId(), Name: run.GetName(), State: run.GetState(), Reason: run.GetReason(), Error: run.GetError(),
		CreatedAt: run.GetCreatedAt(), CompletedAt: run.GetCompletedAt(), Generation: run.GetGeneration(), Problem: run.GetProblem(),
		SubmittedBy: run.GetSubmittedBy(), Batch: run.GetBatch(), Trigger: run.GetTrigger(), Parent: run.GetParent(), Approval: run.GetApproval(),
		IdempotencyKey: run.GetIdempotencyKey(), LateSince: run.GetLateSince(),
	}
}

// changedAt returns when a task entered its state, or zero if unknown.
func changedAt(t *v1.Task) time.Time {
	switch state := t.GetState(); {
	case v1.IsTaskTerminal(state) && t.GetCompletedAt() != nil:
		return t.GetCompletedAt().AsTime()
	case state == v1.TaskRunning && t.GetStartedAt() != nil:
		return t.GetStartedAt().AsTime()
	case state == v1.TaskAssigned && t.GetAssignedAt() != nil:
		return t.GetAssignedAt().AsTime()
	}
	return time.Time{}
}

// sort orders changes by time. Changes without a time come last, because they follow from the other changes.
func (b *Status) sort(changes []Change) {
	place := map[string]int{}
	for i, name := range b.order() {
		place[name] = i
	}
	slices.SortStableFunc(changes, func(x, y Change) int {
		if x.At.IsZero() != y.At.IsZero() {
			return cmp.Compare(boolInt(x.At.IsZero()), boolInt(y.At.IsZero()))
		}
		return cmp.Or(x.At.Compare(y.At), cmp.Compare(place[x.task()], place[y.task()]), cmp.Compare(x.number(), y.number()))
	})
}

// task returns the name of the task that a change belongs to.
func (c Change) task() string {
	if c.Of != "" {
		return c.Of
	}
	return c.Name
}

// number orders the instances of a task before the task itself, because the end of the last instance ends the task.
func (c Change) number() int {
	if c.Of != "" {
		return c.Index
	}
	return math.MaxInt
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// tallies counts the tasks by state, and also the instances if tasks have fanned out: "3 completed", or "3 tasks: 3
// completed; 302 instances: 299 completed, 3 failed".
func (b *Status) tallies(style Style) string {
	tasks := style.tally(b.counts())
	instances, total := InstanceTally(b.tasks, style)
	if total == 0 {
		return tasks
	}
	return fmt.Sprintf("%s: %s; %s: %s", words.Count(b.total, "task"), tasks, words.Count(total, "instance"), instances)
}

// InstanceTally returns the number of instances of tasks, as a text by state and in total.
func InstanceTally(tasks map[string]*v1.Task, style Style) (text string, total int) {
	counts := map[string]int{}
	for _, t := range tasks {
		for state, n := range t.GetCounts() {
			counts[state] += int(n)
			total += int(n)
		}
	}
	return style.tally(counts), total
}

// counts returns the number of tasks by state. Tasks that no message has named yet count as pending.
func (b *Status) counts() map[string]int {
	counts := map[string]int{}
	for _, t := range b.tasks {
		counts[t.GetState()]++
	}
	if unknown := b.total - len(b.tasks); unknown > 0 {
		counts[v1.TaskPending] += unknown
	}
	return counts
}
