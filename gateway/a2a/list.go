package a2a

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"github.com/a2aproject/a2a-go/v2/a2a"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// defaultList and maxList are the default and the maximum number of tasks in a page, as the protocol sets them.
	defaultList = 50
	maxList     = 100
	// maxCounted bounds how many runs beyond a page the total counts.
	maxCounted = 1000
)

// ListTasks lists the runs that the caller may see, newest first.
func (a *agent) ListTasks(ctx context.Context, req *a2a.ListTasksRequest) (*a2a.ListTasksResponse, error) {
	res, err := a.list(ctx, req)
	return res, toProtocolError(ctx, err)
}

func (a *agent) list(ctx context.Context, req *a2a.ListTasksRequest) (*a2a.ListTasksResponse, error) {
	size := req.PageSize
	switch {
	case size == 0:
		size = defaultList
	case size < 0 || size > maxList:
		return nil, errorf(a2a.ErrInvalidParams, "`pageSize` is %d; it must be between 1 and %d", size, maxList)
	case req.ContextID != "" && !contextText().MatchString(req.ContextID):
		return &a2a.ListTasksResponse{Tasks: []*a2a.Task{}, PageSize: size}, nil // no run can have this context
	}
	if req.Status == "TASK_STATE_UNSPECIFIED" {
		req.Status = a2a.TaskStateUnspecified
	}
	runState, err := runStateOf(req.Status)
	if err != nil {
		return nil, err
	}
	before, token, err := parsePage(req.PageToken)
	if err != nil {
		return nil, err
	}
	runs := &v1.ListRunsRequest{Batch: req.ContextID, State: runState, PageSize: int32(size), PageToken: token}
	page, err := a.Runs.ListRuns(ctx, connect.NewRequest(runs))
	if err != nil {
		return nil, err
	}
	answer := &a2a.ListTasksResponse{Tasks: []*a2a.Task{}, PageSize: size, TotalSize: before + len(page.Msg.GetItems())}
	var bytes int // of the artifacts of all tasks, which share the bound of one answer
	for _, run := range page.Msg.GetItems() {
		var kept *artifacts
		if req.IncludeArtifacts {
			kept = &artifacts{bytes: bytes}
		}
		task, err := a.listedTask(ctx, run, req, kept)
		if err != nil {
			return nil, err
		}
		if task != nil {
			answer.Tasks = append(answer.Tasks, task)
		}
		if task != nil && kept != nil {
			bytes = kept.bytes
		}
	}
	if runs.PageToken = page.Msg.GetNextPageToken(); runs.PageToken != "" {
		answer.NextPageToken = formatPage(answer.TotalSize, runs.PageToken)
		runs.PageSize = maxCounted
		rest, err := a.Runs.ListRuns(ctx, connect.NewRequest(runs))
		if err != nil {
			return nil, err
		}
		answer.TotalSize += len(rest.Msg.GetItems())
	}
	return answer, nil
}

// listedTask converts a listed run to a task and adds its artifacts to kept unless kept is nil. It returns nil if the
// request does not select the run or the run has been deleted since.
func (a *agent) listedTask(ctx context.Context, run *v1.Run, req *a2a.ListTasksRequest, kept *artifacts) (*a2a.Task, error) {
	if after := req.StatusTimestampAfter; after != nil && run.GetCompletedAt() != nil && !run.GetCompletedAt().AsTime().After(*after) {
		return nil, nil
	}
	now := &observation{run: run}
	// The list lacks what an open run waits for and how many of its tasks have ended.
	if kept != nil || !v1.IsRunTerminal(run.GetState()) {
		read, err := a.scan(ctx, run.GetId(), kept)
		if connect.CodeOf(err) == connect.CodeNotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		now = read
	}
	if req.Status != a2a.TaskStateUnspecified && now.state() != req.Status {
		return nil, nil
	}
	return a.taskOf(now, kept), nil
}

// runStateOf returns the run state that corresponds to a task state, or "" if several do.
func runStateOf(state a2a.TaskState) (string, error) {
	var found, words []string
	for run, task := range states {
		words = append(words, task.String())
		if task == state {
			found = append(found, run)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1 || state == a2a.TaskStateUnspecified || state == a2a.TaskStateInputRequired:
		return "", nil
	}
	words = append(words, a2a.TaskStateInputRequired.String())
	slices.Sort(words)
	return "", errorf(a2a.ErrInvalidParams, "%q is not a task state; known states are %s", string(state), strings.Join(slices.Compact(words), ", "))
}

// formatPage returns the token of the page that follows the first `before` runs. parsePage is its inverse.
func formatPage(before int, token string) string { return strconv.Itoa(before) + "." + token }

func parsePage(text string) (before int, token string, err error) {
	if text == "" {
		return 0, "", nil
	}
	count, token, ok := strings.Cut(text, ".")
	before, bad := strconv.Atoi(count)
	if !ok || bad != nil || before < 0 {
		return 0, "", errorf(a2a.ErrInvalidParams, "the `pageToken` does not come from ListTasks")
	}
	return before, token, nil
}
