package registry

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// updateTimeout bounds an update, which a control process has to handle.
	updateTimeout = 10 * time.Second
	// entryTaskTimeout is how long a control process may take for a workflow task of an entry
	// before another one gets it.
	entryTaskTimeout = 5 * time.Second
)

// Drain makes a node accept no new tasks and move the tasks that wait there. If the node is already
// draining, Drain replaces the deadline and the reason.
func (r *Registry) Drain(ctx context.Context, name string, drain *historyv1.NodeDrain) (*v1.Node, error) {
	return r.change(ctx, name, names.DrainUpdate, drain)
}

// Undrain puts a draining node back into service. It is a no-op for a node that does not drain.
func (r *Registry) Undrain(ctx context.Context, name string) (*v1.Node, error) {
	return r.change(ctx, name, names.UndrainUpdate)
}

// SetTerms sets or clears terms on which a node takes tasks.
func (r *Registry) SetTerms(ctx context.Context, name string, change *historyv1.NodeTermsChange) (*v1.Node, error) {
	return r.change(ctx, name, names.TermsUpdate, change)
}

// Remove deletes the entry of an offline node. It returns ErrState if the node is not offline.
func (r *Registry) Remove(ctx context.Context, name string) error {
	return r.update(ctx, name, names.RemoveUpdate)
}

func (r *Registry) change(ctx context.Context, name, update string, args ...any) (*v1.Node, error) {
	if err := r.update(ctx, name, update, args...); err != nil {
		return nil, err
	}
	return r.Get(ctx, name)
}

func (r *Registry) update(ctx context.Context, name, update string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	for {
		h, err := r.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: names.NodeWorkflowID(name), UpdateName: update, Args: args,
			WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = h.Get(ctx, nil)
		}
		_, isLost := errors.AsType[*serviceerror.NotFound](err)
		if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.Type() == acceptedByEndedEntry {
			isLost = true
		}
		if !isLost {
			return translate(ctx, name, err)
		}
		// The entry continued as new before it answered, unless it is gone. It may be sent every update twice.
		if _, err := r.Entry(ctx, name); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return translate(ctx, name, ctx.Err())
		case <-time.After(continuePause):
		}
	}
}

const (
	// acceptedByEndedEntry is the type of Temporal's error for an update that an execution accepted and did not complete.
	acceptedByEndedEntry = "AcceptedUpdateCompletedWorkflow"
	// continuePause is the wait before an update is sent again to an entry that has continued as new.
	continuePause = 50 * time.Millisecond
)

// Register creates the entry of a node, or takes over an existing one, and returns its record. It
// returns ErrTaken if a live worker has the name, ErrOutdated if the entry needs Replace, and
// ErrNoControl if no control process handled the request in time; in the last case the caller may
// try again.
func (r *Registry) Register(ctx context.Context, reg *historyv1.NodeRegistration) (*historyv1.NodeRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	name := reg.GetName()
	start := r.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID:                       names.NodeWorkflowID(name),
		TaskQueue:                names.ElectionQueue,
		WorkflowTaskTimeout:      entryTaskTimeout,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            "node " + name,
	}, names.NodeWorkflow, &historyv1.NodeInput{Name: name})
	h, err := r.client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateName: names.RegisterUpdate, Args: []any{reg},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	var record historyv1.NodeRecord
	if err == nil {
		err = h.Get(ctx, &record)
	}
	if err != nil {
		return nil, translate(ctx, name, err)
	}
	return &record, nil
}

// Leave reports that the worker of an incarnation has stopped. It is for a worker without a
// Heartbeat, whose end would report that.
func (r *Registry) Leave(ctx context.Context, name, incarnation string) error {
	return r.update(ctx, name, names.LeaveUpdate, &historyv1.NodeInput{Name: name, Incarnation: incarnation})
}

// Restart reports that the worker of an incarnation has stopped and has left attempts running for the next worker of the
// node.
func (r *Registry) Restart(ctx context.Context, name string, restart *historyv1.NodeRestart) error {
	return r.update(ctx, name, names.RestartUpdate, restart)
}

// Replace closes an entry that an older version has created, so that the name can be registered
// again.
func (r *Registry) Replace(ctx context.Context, name string) error {
	return r.close(ctx, name, "replaced by a newer version")
}

// close closes an entry from outside.
func (r *Registry) close(ctx context.Context, name, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := r.client.TerminateWorkflow(ctx, names.NodeWorkflowID(name), "", reason)
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return nil
	}
	return translate(ctx, name, err)
}
