package taskrunner

import (
	"context"
	"fmt"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// maxShownInstances is the largest number of instances of a parent that a task's input describes.
const maxShownInstances = 1000

// ancestors returns how the ancestors of a request's task ended, by name, in the form that the task reads:
//
//	{"state": "failed", "reason": "exit_code", "error": "exit code 1", "exitCode": 1, "attempt": 3}
//
// A fanned-out ancestor has no attempt, but `count`, `completed` and `failed`. If it is a parent, it also has
// `instances`.
func (r inputReader) ancestors(ctx context.Context, req *historyv1.ExecuteRequest) (map[string]any, error) {
	ends := req.GetEnds()
	all := make(map[string]any, len(ends.GetCompleted())+len(ends.GetOthers()))
	for _, name := range ends.GetCompleted() {
		all[name] = shownEnd(&historyv1.AncestorEnd{State: v1.TaskCompleted})
	}
	for _, end := range ends.GetOthers() {
		shown := shownEnd(end)
		all[end.GetTask()] = shown
		if end.GetFanOut() == nil {
			continue
		}
		for _, p := range req.GetParents() {
			if p.GetTask() != end.GetTask() {
				continue
			}
			if p.GetFanOut().GetError() != "" && p.GetFanOut().GetOutputs() == nil {
				continue // their states are not known
			}
			instances, err := r.instances(ctx, p.GetFanOut(), end.GetFanOut().GetItems())
			if err != nil {
				return nil, fmt.Errorf("task %s: %w", p.GetTask(), err)
			}
			shown["instances"] = instances
		}
	}
	return all, nil
}

// shownRun returns the outcome of the run in the form that a task in `finally` reads, or nil for any other task.
func shownRun(view *historyv1.RunView) map[string]any {
	if view == nil {
		return nil
	}
	shown := map[string]any{"state": view.GetState()}
	shown["failed"] = append([]string{}, view.GetFailed()...)
	if view.GetReason() != "" {
		shown["reason"] = view.GetReason()
	}
	if view.GetError() != "" {
		shown["error"] = view.GetError()
	}
	return shown
}

// shownEnd describes how an ancestor ended, without its instances.
func shownEnd(end *historyv1.AncestorEnd) map[string]any {
	shown := map[string]any{"state": end.GetState(), "exitCode": end.GetExitCode()}
	if end.GetReason() != "" {
		shown["reason"] = end.GetReason()
	}
	if end.GetError() != "" {
		shown["error"] = end.GetError()
	}
	if f := end.GetFanOut(); f != nil {
		shown["count"], shown["completed"], shown["failed"] = f.GetCount(), f.GetCompleted(), f.GetCount()-f.GetCompleted()
	} else {
		shown["attempt"] = end.GetAttempt()
	}
	return shown
}

// instances describes the instances of a parent. If there are too many, it describes only the first that did not
// complete.
func (r inputReader) instances(ctx context.Context, view *historyv1.FanOutView, items *historyv1.Items) ([]any, error) {
	outputs, err := r.lists.All(ctx, r.records.store, view.GetOutputs())
	if err != nil {
		return nil, err
	}
	list, err := r.lists.All(ctx, r.records.store, items)
	if err != nil {
		return nil, err
	}
	many := view.GetCount() > maxShownInstances
	instances := []any{}
	for i := range view.GetCount() {
		state, unfinished := outputs.GetStates()[i]
		switch {
		case many && (!unfinished || len(instances) == maxShownInstances):
			continue
		case !unfinished:
			state = v1.TaskCompleted
		}
		one := map[string]any{"index": i, "state": state}
		if int(i) < len(list.GetItems()) {
			one["item"] = list.GetItems()[i].AsInterface()
		}
		instances = append(instances, one)
	}
	return instances, nil
}
