package web

import (
	"context"
	"sync"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// approvalSpecs reads what approval tasks ask of people. It caches it by task, because a run that waits keeps its definition. It is
// for a single goroutine.
type approvalSpecs struct{ known map[taskKey]*v1.ApprovalSpec }

// taskKey identifies a task of a run.
type taskKey struct{ run, task string }

// read returns the specs of listed tasks. It leaves out those of runs that cannot be read and of runs beyond maxHeaders.
func (a *approvalSpecs) read(ctx context.Context, s services, tasks []*v1.ListedTask) map[*v1.ListedTask]*v1.ApprovalSpec {
	known := map[taskKey]*v1.ApprovalSpec{}
	unread := map[string][]taskKey{} // by run
	for _, t := range tasks {
		key := keyOfTask(t)
		if spec := a.known[key]; spec != nil {
			known[key] = spec
		} else if len(unread) < maxHeaders || unread[key.run] != nil {
			unread[key.run] = append(unread[key.run], key)
		}
	}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(parallelHeaders)
	for run, keys := range unread {
		group.Go(func() error {
			res, err := s.runs.GetRunDefinition(ctx, connect.NewRequest(&v1.GetRunDefinitionRequest{Id: run}))
			if err == nil {
				mu.Lock()
				for _, key := range keys {
					known[key] = definition.Approval(v1.TaskNamed(res.Msg.GetDefinition(), key.task))
				}
				mu.Unlock()
			}
			return nil
		})
	}
	_ = group.Wait() // every function returns nil
	a.known = known
	found := map[*v1.ListedTask]*v1.ApprovalSpec{}
	for _, t := range tasks {
		found[t] = known[keyOfTask(t)]
	}
	return found
}

// keyOfTask returns the key of a listed task, or of the task that a listed instance belongs to.
func keyOfTask(t *v1.ListedTask) taskKey {
	task := t.GetTask()
	if of, _, isInstance := names.ParseInstanceName(task); isInstance {
		task = of
	}
	return taskKey{t.GetRun(), task}
}
