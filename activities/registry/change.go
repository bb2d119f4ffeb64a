package registry

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// updateTimeout bounds a change, which a control process has to carry out.
	updateTimeout = 10 * time.Second
	// entryTaskTimeout is how long a control process may take for a step of an
	// entry's workflow before another one gets it.
	entryTaskTimeout = 5 * time.Second
)

// Drain has a node take nothing new and move what waits there. Draining a node
// that drains gives it the new deadline and reason.
func (r *Registry) Drain(ctx context.Context, name string, drain *v1.NodeDrain) (*v1.Node, error) {
	return r.change(ctx, name, names.DrainUpdate, drain)
}

// Undrain puts a draining node back into service; of any other it changes nothing.
func (r *Registry) Undrain(ctx context.Context, name string) (*v1.Node, error) {
	return r.change(ctx, name, names.UndrainUpdate)
}

// Remove forgets a node that is offline; ErrState: it is not.
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
	h, err := r.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: names.NodeWorkflowID(name), UpdateName: update, Args: args,
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = h.Get(ctx, nil)
	}
	return translate(ctx, name, err)
}

// Register opens the entry of a node, or takes it over, and returns its record.
// ErrTaken: a live worker has the name. ErrOutdated: see Replace. ErrNoControl:
// no control process was there to decide; it may be tried again.
func (r *Registry) Register(ctx context.Context, reg *v1.NodeRegistration) (*v1.NodeRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	name := reg.GetName()
	start := r.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID:                       names.NodeWorkflowID(name),
		TaskQueue:                names.ElectionQueue,
		WorkflowTaskTimeout:      entryTaskTimeout,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            "node " + name,
	}, names.NodeWorkflow, &v1.NodeInput{Name: name})
	h, err := r.client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateName: names.RegisterUpdate, Args: []any{reg},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	var record v1.NodeRecord
	if err == nil {
		err = h.Get(ctx, &record)
	}
	if err != nil {
		return nil, translate(ctx, name, err)
	}
	return &record, nil
}

// Leave says that the worker of an incarnation has stopped, for when it has no
// Heartbeat whose end says so.
func (r *Registry) Leave(ctx context.Context, name, incarnation string) error {
	return r.update(ctx, name, names.LeaveUpdate, &v1.NodeInput{Name: name, Incarnation: incarnation})
}

// Replace closes an entry that an older version has opened, so that the name can
// be registered anew.
func (r *Registry) Replace(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := r.client.TerminateWorkflow(ctx, names.NodeWorkflowID(name), "", "replaced by a newer version")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return nil
	}
	return translate(ctx, name, err)
}
