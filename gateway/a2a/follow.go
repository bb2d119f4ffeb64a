package a2a

import (
	"context"
	"errors"
	"iter"
	"slices"

	"connectrpc.com/connect"
	"github.com/a2aproject/a2a-go/v2/a2a"

	v1 "switchyard/proto/switchyard/v1"
)

// SubscribeToTask sends the current state of a task and then its changes, until the task has ended.
func (a *agent) SubscribeToTask(ctx context.Context, req *a2a.SubscribeToTaskRequest) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		if err := requireID(req.ID); err != nil {
			yield(nil, err)
			return
		}
		now, err := a.observe(ctx, string(req.ID))
		if err == nil && now.state().Terminal() {
			err = errorf(a2a.ErrUnsupportedOperation, "task %s has ended; use GetTask to read it", req.ID)
		}
		if err != nil {
			yield(nil, toProtocolError(ctx, err))
			return
		}
		a.follow(ctx, string(req.ID), a2a.TaskState.Terminal, yield)
	}
}

// awaitState blocks until the run reaches a state for which isEnd is true. It reads the run once more before it returns,
// because the first message of a watch may be older than a decision that was just made.
func (a *agent) awaitState(ctx context.Context, run string, isEnd func(a2a.TaskState) bool) error {
	return a.watch(ctx, run, func(now *observation, _ map[string]*v1.Task) (bool, error) {
		if !isEnd(now.state()) {
			return true, nil
		}
		now, err := a.observe(ctx, run)
		return err == nil && !isEnd(now.state()), err
	})
}

// follow sends a run as a task, then its artifacts and status changes, up to the first state for which isEnd is true. It
// returns early when yield returns false.
func (a *agent) follow(ctx context.Context, run string, isEnd func(a2a.TaskState) bool, yield func(a2a.Event, error) bool) {
	f := &follower{agent: a, isEnd: isEnd, yield: yield}
	if err := a.watch(ctx, run, func(now *observation, changed map[string]*v1.Task) (bool, error) {
		return f.sendChanges(ctx, now, changed)
	}); err != nil {
		yield(nil, toProtocolError(ctx, err))
	}
}

// follower sends the changes of a run. It is not safe for concurrent use.
type follower struct {
	*agent
	isEnd func(a2a.TaskState) bool
	yield func(a2a.Event, error) bool

	status    string // the last status sent; empty if nothing was sent yet
	artifacts artifacts
}

// sendChanges sends new artifacts and a changed status, and reports whether to continue.
func (f *follower) sendChanges(ctx context.Context, now *observation, changed map[string]*v1.Task) (more bool, err error) {
	run := now.run.GetId()
	if f.status == "" {
		if now, err = f.scan(ctx, run, &f.artifacts); err != nil {
			return false, err
		}
		f.status = now.summary()
		return f.yield(f.taskOf(now, &f.artifacts), nil) && !f.isEnd(now.state()), nil
	}
	first := len(f.artifacts.all)
	if f.isEnd(now.state()) { // a message may hold only some of the changed tasks
		_, err = f.scan(ctx, run, &f.artifacts)
	} else {
		err = f.readEnded(ctx, run, changed)
	}
	if err != nil {
		return false, err
	}
	info := infoOf(now.run)
	for _, artifact := range f.artifacts.all[first:] {
		if !f.yield(&a2a.TaskArtifactUpdateEvent{TaskID: info.TaskID, ContextID: info.ContextID, Artifact: artifact, LastChunk: true}, nil) {
			return false, nil
		}
	}
	if now.summary() == f.status {
		return true, nil
	}
	f.status = now.summary()
	event := &a2a.TaskStatusUpdateEvent{TaskID: info.TaskID, ContextID: info.ContextID, Status: now.status(f.now())}
	return f.yield(event, nil) && !f.isEnd(now.state()), nil
}

// readEnded reads the artifacts of the changed tasks that have succeeded.
func (f *follower) readEnded(ctx context.Context, run string, changed map[string]*v1.Task) error {
	var names []string
	for _, name := range sortedNames(changed) {
		if v1.IsTaskSuccess(changed[name].GetState()) {
			names = append(names, name)
		}
	}
	for part := range slices.Chunk(names, fullPage) {
		for req := (&v1.GetRunRequest{Id: run, Tasks: part}); !f.artifacts.isFull(); {
			res, err := f.Runs.GetRun(ctx, connect.NewRequest(req))
			if err != nil {
				return err
			}
			f.artifacts.add(res.Msg.GetRun().GetTasks())
			if req.PageToken = res.Msg.GetNextPageToken(); req.PageToken == "" {
				break
			}
		}
	}
	return nil
}

// watch calls see with the current run, then on every change with the changed tasks, until see returns false or an error.
func (a *agent) watch(ctx context.Context, run string, see func(now *observation, changed map[string]*v1.Task) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := a.Runs.WatchRun(ctx, connect.NewRequest(&v1.WatchRunRequest{Id: run}))
	if err != nil {
		return err
	}
	defer stream.Close()
	now := &observation{}
	for stream.Receive() {
		now.run, now.total = stream.Msg().GetRun(), int(stream.Msg().GetTaskCount())
		now.update(now.run.GetTasks())
		a.readInputs(ctx, now)
		if more, err := see(now, now.run.GetTasks()); !more || err != nil {
			return err
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	if now.run != nil && now.state().Terminal() {
		return nil
	}
	return errors.New("the watch of the run ended; subscribe to the task again")
}
