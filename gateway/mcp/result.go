package mcp

import (
	"context"
	"slices"
	"strings"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// maxAttempts bounds the attempts in an answer; the newest are kept.
const maxAttempts = 8

// taskResult returns a task with its result. Without a task name it returns the only task of the run.
func taskResult(ctx context.Context, i *invocation) (any, error) {
	req := i.request.(*v1.GetRunTaskRequest)
	if req.GetTask() == "" {
		task, err := i.onlyTask(ctx, req.GetId())
		if err != nil {
			return nil, err
		}
		req.Task = task
	}
	if err := i.awaitEnd(ctx, req.GetId(), req.GetTask()); err != nil {
		return nil, err
	}
	answer, err := i.Runs.GetRunTask(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, err
	}
	if task := answer.Msg.GetTask(); task != nil {
		task.Name, task.Attempts = &req.Task, newest(task.GetAttempts())
	}
	if instance := answer.Msg.GetInstance(); instance != nil {
		instance.Attempts = newest(instance.GetAttempts())
	}
	return shorten(answer.Msg)
}

// newest returns the last attempts of a task or an instance.
func newest(attempts []*v1.Attempt) []*v1.Attempt {
	return attempts[max(0, len(attempts)-maxAttempts):]
}

// onlyTask returns the name of the only task of a run, or an error that lists the tasks if the run has several.
func (i *invocation) onlyTask(ctx context.Context, run string) (string, error) {
	listed, err := i.Runs.ListRunTasks(ctx, connect.NewRequest(&v1.ListRunTasksRequest{Id: run, Brief: true, PageSize: maxList}))
	if err != nil {
		return "", err
	}
	var names []string
	for _, task := range listed.Msg.GetItems() {
		names = append(names, task.GetName())
	}
	if len(names) == 1 {
		return names[0], nil
	}
	slices.Sort(names)
	return "", usagef("The run %s has %d tasks; name one of them as `task`: %s", run, listed.Msg.GetTotal(), strings.Join(names, ", "))
}
