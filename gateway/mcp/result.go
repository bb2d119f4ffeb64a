package mcp

import (
	"context"
	"slices"
	"strings"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// resultOf is the projection of the result of a task.
const resultOf = "result(exitCode signal stdout stderr output contextUpdate cpuSeconds peakMemoryMb agent(model turns toolCalls inputTokens outputTokens cacheReadTokens cacheWriteTokens costUsd session))"

// resultFields is the projection of get_task_result.
const resultFields = "task(name type state reason node attempt error dependsOn createdAt queuedAt startedAt completedAt scheduledAfter deadLetteredAt count counts cachedFrom childRun notice held " +
	resultOf + " attempts(" + attemptFields + ")) " +
	"instance(index state reason node attempt error startedAt completedAt scheduledAfter deadLetteredAt cachedFrom childRun notice " + resultOf + " attempts(" + attemptFields + "))"

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
	for _, attempts := range []*[]*v1.Attempt{attemptsOf(answer.Msg.GetTask()), attemptsOf(answer.Msg.GetInstance())} {
		if attempts != nil && len(*attempts) > maxAttempts {
			*attempts = (*attempts)[len(*attempts)-maxAttempts:]
		}
	}
	if task := answer.Msg.GetTask(); task != nil {
		name := req.GetTask()
		task.Name = &name
	}
	return project(answer.Msg, parseProjection(i.tool.gives))
}

// attemptsOf returns a pointer to the attempts of a task or instance, or nil if m is neither.
func attemptsOf(m any) *[]*v1.Attempt {
	switch m := m.(type) {
	case *v1.Task:
		if m != nil {
			return &m.Attempts
		}
	case *v1.Instance:
		if m != nil {
			return &m.Attempts
		}
	}
	return nil
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
