package web

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/drawing/svg"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// maxRetried is how many tasks have their attempts before the newest one drawn.
	maxRetried = 1000
	// retriedAtOnce is how many tasks one call reads.
	retriedAtOnce = 200
)

// runAttempts keeps the attempts of tasks that were retried, which streams of a run leave out.
type runAttempts struct {
	services services
	marks    map[string]string // which attempts of a task are known
	tasks    map[string]*v1.Task
}

// retried is a task or an instance that may have been retried.
type retried interface {
	GetAttempt() int32
	GetState() string
}

// wasRetried reports whether a task or an instance has had an attempt before the newest one, or waits for the next.
func wasRetried(t retried, assigned bool) bool {
	return t.GetAttempt() > 0 || t.GetState() == v1.TaskQueued && assigned
}

// markOf returns a text that changes when a task has another attempt behind it, or "" if the task was never retried.
func markOf(generation int32, t *v1.Task, instances []*v1.Instance) string {
	mark := ""
	if wasRetried(t, t.GetAssignedAt() != nil) {
		mark = fmt.Sprint(t.GetAttempt(), t.GetState() == v1.TaskQueued)
	}
	if t.GetCount() <= svg.MaxInstanceRows {
		for _, i := range instances {
			if i != nil && wasRetried(i, i.GetAssignedAt() != nil) {
				mark += fmt.Sprint(";", i.GetIndex(), i.GetAttempt(), i.GetState() == v1.TaskQueued)
			}
		}
	}
	if mark == "" {
		return ""
	}
	return fmt.Sprint(generation, ":", mark)
}

// add gives the tasks and instances of a state the attempts that they have had. What cannot be read now is left out.
func (a *runAttempts) add(ctx context.Context, state runState) {
	var stale []string
	marks := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(state.tasks)) {
		mark := markOf(state.run.GetGeneration(), state.tasks[name], state.instances[name])
		if mark == "" || len(marks) == maxRetried {
			continue
		}
		if marks[name] = mark; a.marks[name] != mark {
			stale = append(stale, name)
		}
	}
	for names := range slices.Chunk(stale, retriedAtOnce) {
		res, err := a.services.runs.GetRun(ctx, connect.NewRequest(&v1.GetRunRequest{Id: state.run.GetId(), Brief: true, Tasks: names}))
		if err != nil {
			continue
		}
		for name, t := range res.Msg.GetRun().GetTasks() {
			a.tasks[name], a.marks[name] = t, marks[name]
		}
	}
	for name := range marks {
		full := a.tasks[name]
		if full == nil {
			continue
		}
		t := proto.CloneOf(state.tasks[name])
		t.Attempts = full.GetAttempts()
		state.tasks[name] = t
		for _, i := range full.GetInstances() {
			if known := state.instances[name]; int(i.GetIndex()) < len(known) && known[i.GetIndex()] != nil {
				instance := proto.CloneOf(known[i.GetIndex()])
				instance.Attempts = i.GetAttempts()
				known[i.GetIndex()] = instance
			}
		}
	}
}
