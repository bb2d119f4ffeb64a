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
	// maxRetried bounds the tasks whose earlier attempts are drawn.
	maxRetried = 1000
	// retriedAtOnce is the number of tasks read per call.
	retriedAtOnce = 200
)

// runAttempts caches the attempts of retried tasks, which watch streams leave out.
type runAttempts struct {
	services services
	marks    map[string]string // identifies the known attempts of each task
	tasks    map[string]*v1.Task
}

// retried is implemented by tasks and instances.
type retried interface {
	GetAttempt() int32
	GetState() string
}

// wasRetried reports whether a task or instance had an attempt before the newest one, or waits for its next attempt.
func wasRetried(t retried, assigned bool) bool {
	return t.GetAttempt() > 0 || t.GetState() == v1.TaskQueued && assigned
}

// markOf returns a text that changes whenever another attempt of the task or its instances has ended, or "" if nothing was
// ever retried.
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

// add adds the earlier attempts to the tasks and instances of a state. Attempts that cannot be read now are left out.
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
