package tui

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// Board is a run as it has been told so far. It is not safe for concurrent use.
type Board struct {
	run   *v1.Run // without tasks
	tasks map[string]*v1.Task
	total int
	names []string // of the tasks, parents before children; nil when it must be worked out anew
	// instances of the tasks that have fanned out, by task.
	instances map[string]instances
}

// NewBoard returns the board of a run of which nothing but its id is known.
func NewBoard(id string) *Board {
	return &Board{run: &v1.Run{Id: id, State: v1.RunPending}, tasks: map[string]*v1.Task{}, instances: map[string]instances{}}
}

// BoardOf returns the board of a run with all of its tasks.
func BoardOf(run *v1.Run) *Board {
	b := NewBoard(run.GetId())
	b.Apply(&v1.WatchRunResponse{Run: run, TaskCount: int32(len(run.GetTasks()))})
	return b
}

// Run is what is known of the run itself; its tasks are left out.
func (b *Board) Run() *v1.Run { return b.run }

// Ended says whether the run has ended.
func (b *Board) Ended() bool { return v1.IsRunTerminal(b.run.GetState()) }

// Change is a task whose state, node, attempt, note or tally is new, or an
// instance of a task of which that is true.
type Change struct {
	Name string // "each" or "each[3]"
	Task *v1.Task
	// At is when it came about, as the system says; zero where it does not say.
	At time.Time
	// Of is the task that it is an instance of, and Index its number; "": it is a task.
	Of    string
	Index int
	// TallyOnly: of a fanned-out task nothing is new but how far its instances are.
	TallyOnly bool
}

// Apply takes in a message of a watch and returns what people should hear of it,
// in the order in which it came about. A message may come twice, and tells of the
// instances of a task only those that have changed.
func (b *Board) Apply(m *v1.WatchRunResponse) []Change {
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
		ofInstances := b.merge(name, task)
		if task.GetError() == "" {
			task.Error = b.waitsFor(name)
		}
		if !known {
			b.names = nil
			before = &v1.Task{State: v1.TaskPending}
		}
		if before.GetState() != task.GetState() || before.GetNode() != task.GetNode() ||
			before.GetAttempt() != task.GetAttempt() || before.GetError() != task.GetError() {
			changes = append(changes, Change{Name: name, Task: task, At: moment(task)})
		} else if before.GetCount() != task.GetCount() || !maps.Equal(before.GetCounts(), task.GetCounts()) {
			changes = append(changes, Change{Name: name, Task: task, TallyOnly: true})
		}
		changes = append(changes, ofInstances...)
	}
	b.run, b.total = header(run), max(int(m.GetTaskCount()), len(b.tasks))
	if len(changes) > 1 {
		b.sort(changes)
	}
	return changes
}

func header(run *v1.Run) *v1.Run {
	return &v1.Run{
		Id: run.GetId(), Name: run.GetName(), State: run.GetState(), Reason: run.GetReason(), Error: run.GetError(),
		CreatedAt: run.GetCreatedAt(), CompletedAt: run.GetCompletedAt(), Generation: run.GetGeneration(), Problem: run.GetProblem(),
		SubmittedBy: run.GetSubmittedBy(), Batch: run.GetBatch(),
	}
}

// moment is when a task came into its state; zero when it is not known.
func moment(t *v1.Task) time.Time {
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

// sort puts changes into the order of their moments; those without one come
// last, because what has just become possible follows from the rest.
func (b *Board) sort(changes []Change) {
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

// task is the task that a change is about.
func (c Change) task() string {
	if c.Of != "" {
		return c.Of
	}
	return c.Name
}

// number puts the instances of a task in order, and before the task itself: the
// end of the last one is what ends the task.
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

// counts are the tasks by state; those that have not been told of yet are pending.
func (b *Board) counts() map[string]int {
	counts := map[string]int{}
	for _, t := range b.tasks {
		counts[t.GetState()]++
	}
	if unknown := b.total - len(b.tasks); unknown > 0 {
		counts[v1.TaskPending] += unknown
	}
	return counts
}
