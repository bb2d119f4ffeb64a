package mcp

import (
	"context"
	"time"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// maxWait bounds how long a call may wait, in seconds. Clients time out after a minute or more.
const maxWait = 50

// wait returns how long the call may wait, within maxWait.
func (i *invocation) wait(otherwise int) time.Duration {
	if i.arguments.WaitSeconds != nil {
		otherwise = *i.arguments.WaitSeconds
	}
	return time.Duration(min(max(otherwise, 0), maxWait)) * time.Second
}

// awaitEnd blocks until a run has ended, or its task if one is named, or the call has waited long enough, which is no error: the
// caller then shows the state at that time.
func (i *invocation) awaitEnd(ctx context.Context, run, task string) error {
	wait := i.wait(0)
	if wait == 0 {
		return nil
	}
	// The call gets no deadline: the gateway would end it with an error before this timer cancels it.
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(wait, cancel).Stop()
	stream, err := i.Runs.WatchRun(waiting, connect.NewRequest(&v1.WatchRunRequest{Id: run}))
	if err != nil {
		return unlessOver(waiting, ctx, err)
	}
	defer stream.Close()
	for changes := 1.0; stream.Receive(); changes++ {
		changed := stream.Msg().GetRun()
		if task != "" && v1.HasTaskEnded(changed.GetTasks()[task]) {
			return nil
		}
		if i.progress != nil {
			i.progress(ctx, changes, "the run is "+changed.GetState())
		}
	}
	return unlessOver(waiting, ctx, stream.Err())
}

// unlessOver returns the error of a call that waits, or nil if the call was cancelled because it has waited long enough.
func unlessOver(waiting, call context.Context, err error) error {
	if waiting.Err() != nil {
		return call.Err()
	}
	return err
}
