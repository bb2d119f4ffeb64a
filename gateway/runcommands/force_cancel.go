package runcommands

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/auth"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// forcedCancel terminates runs.
type forcedCancel struct {
	client  client.Client
	reader  *runview.Reader
	updater updater
	store   *store.Store
	log     *slog.Logger
}

const (
	// lastStatusTimeout bounds the query to a run that is cancelled, or the last one before it is terminated.
	lastStatusTimeout = time.Second
	// terminators is the number of workflows below a run that are terminated concurrently.
	terminators = 16
	// maxDepth bounds how many levels below a run are searched for workflows.
	maxDepth = 32
)

// cancel terminates a run and every workflow below it, in whatever state they are. Nodes learn that a
// workflow has ended by a push, or from the reply to their next heartbeat. The error is Aborted if nothing
// was open.
func (f forcedCancel) cancel(ctx context.Context, id, reason string) (*v1.CancelRunResponse, error) {
	cause := "ended by force"
	if who := auth.From(ctx).Name; who != "" {
		cause += " by " + who
	}
	if reason != "" {
		cause += ": " + reason
	}
	status := f.lastStatus(ctx, id)
	t := &termination{client: f.client, cause: cause, seen: map[string]bool{id: true}}
	if err := t.terminate(ctx, id); err != nil {
		return nil, err
	}
	if t.ended == 0 {
		return nil, f.updater.ClosedError(ctx, id)
	}
	if t.root && status != nil {
		f.saveTerminated(ctx, id, status)
	}
	return &v1.CancelRunResponse{Id: id, Children: int32(t.children), Attempts: int32(t.attempts), FinallyLeftOut: hasBegun(status) && f.hasFinally(ctx, id)}, nil
}

// hasBegun reports whether a task of a run could start, as far as its status is known.
func hasBegun(status *historyv1.StatusResponse) bool {
	tasks := status.GetRun().GetTasks()
	if status == nil || int(status.GetTaskCount()) > len(tasks) {
		return true
	}
	for _, task := range tasks {
		if runview.HasBegun(task) {
			return true
		}
	}
	return false
}

// hasFinally reports whether the definition of a run has `finally`, as far as it can be read.
func (f forcedCancel) hasFinally(ctx context.Context, id string) bool {
	desc, err := f.reader.Describe(ctx, id)
	if err != nil {
		return false
	}
	in, err := f.reader.Input(ctx, desc.GetWorkflowExecutionInfo().GetExecution())
	return err == nil && len(in.GetDefinition().GetFinally()) > 0
}

// isInFinally reports whether `finally` of a run is known to run, and not to have been ended by the signals so far.
func (f forcedCancel) isInFinally(ctx context.Context, id string) bool {
	if !f.hasFinally(ctx, id) {
		return false
	}
	return phrase.IsInFinally(f.lastStatus(ctx, id).GetRun().GetError())
}

// lastStatus returns the status of a run just before it is terminated, or nil if the run does not answer.
func (f forcedCancel) lastStatus(ctx context.Context, id string) *historyv1.StatusResponse {
	desc, err := f.reader.Describe(ctx, id)
	if err != nil || desc.GetPendingWorkflowTask().GetAttempt() > 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lastStatusTimeout)
	defer cancel()
	said, err := f.reader.OpenStatus(ctx, desc.GetWorkflowExecutionInfo())
	if err != nil {
		return nil
	}
	return said.Status
}

// saveTerminated stores the last status of a terminated run, because its workflow may no longer answer
// queries. Without a stored status, readers query the workflow.
func (f forcedCancel) saveTerminated(ctx context.Context, id string, status *historyv1.StatusResponse) {
	key := storekey.Status(names.Home(id, status.GetChain()), status.GetRun().GetGeneration())
	if _, err := f.store.PutMessageIfAbsent(ctx, key, status); err != nil {
		f.log.Warn("cannot save the status of a run that was ended by force", "run", id, "error", err)
	}
}
