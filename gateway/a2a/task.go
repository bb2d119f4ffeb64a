package a2a

import (
	"context"
	"maps"
	"slices"

	"connectrpc.com/connect"
	"github.com/a2aproject/a2a-go/v2/a2a"

	v1 "switchyard/proto/switchyard/v1"
)

// Maximum number of tasks in a page that is read with and without their results.
const (
	fullPage  = 1000
	briefPage = 10000
)

// contextOf returns the context of a run: its batch, or its own ID if it has none.
func contextOf(run *v1.Run) string {
	if run.GetBatch() != "" {
		return run.GetBatch()
	}
	return run.GetId()
}

// infoOf returns the task and context IDs of a run.
func infoOf(run *v1.Run) a2a.TaskInfo {
	return a2a.TaskInfo{TaskID: a2a.TaskID(run.GetId()), ContextID: contextOf(run)}
}

// observe reads the state of a run without the results of its tasks.
func (a *agent) observe(ctx context.Context, run string) (*observation, error) {
	return a.scan(ctx, run, nil)
}

// read reads a run as a task with its artifacts.
func (a *agent) read(ctx context.Context, run string) (*a2a.Task, error) {
	var kept artifacts
	now, err := a.scan(ctx, run, &kept)
	if err != nil {
		return nil, err
	}
	return a.taskOf(now, &kept), nil
}

// scan reads a run with all its tasks and adds their artifacts to kept while there is room. A nil kept skips the artifacts.
func (a *agent) scan(ctx context.Context, run string, kept *artifacts) (*observation, error) {
	now := &observation{}
	for req := (&v1.GetRunRequest{Id: run}); ; {
		req.Brief = kept == nil || kept.isFull()
		req.PageSize = fullPage
		if req.GetBrief() {
			req.PageSize = briefPage
		}
		res, err := a.Runs.GetRun(ctx, connect.NewRequest(req))
		if err != nil {
			return nil, err
		}
		now.run = res.Msg.GetRun()
		now.total += len(now.run.GetTasks())
		now.update(now.run.GetTasks())
		if kept != nil {
			kept.add(now.run.GetTasks())
		}
		if req.PageToken = res.Msg.GetNextPageToken(); req.PageToken == "" {
			a.readInputs(ctx, now)
			return now, nil
		}
	}
}

// taskOf converts an observed run to a task of the protocol.
func (a *agent) taskOf(now *observation, kept *artifacts) *a2a.Task {
	info := infoOf(now.run)
	task := &a2a.Task{ID: info.TaskID, ContextID: info.ContextID, Status: now.status(a.now()), Metadata: map[string]any{
		"workflow": now.run.GetName(), "runState": now.run.GetState(),
	}}
	for name, value := range map[string]string{"reason": now.run.GetReason(), "submittedBy": now.run.GetSubmittedBy()} {
		if value != "" {
			task.Metadata[name] = value
		}
	}
	if kept != nil {
		task.Artifacts = kept.all
		if kept.omitted > 0 {
			task.Metadata["omittedArtifacts"] = kept.omitted
		}
	}
	return task
}

// sortedNames returns the names of tasks in ascending order.
func sortedNames(tasks map[string]*v1.Task) []string { return slices.Sorted(maps.Keys(tasks)) }
