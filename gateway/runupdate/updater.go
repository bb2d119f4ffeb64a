package runupdate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Updater sends updates to the workflows of runs. It is safe for concurrent use.
type Updater struct {
	client client.Client
	reader *runview.Reader
	slots  keyedLimiter // by run
	log    *slog.Logger
}

// New returns an updater of the runs that a reader reads.
func New(c client.Client, reader *runview.Reader, log *slog.Logger) *Updater {
	return &Updater{client: c, reader: reader, log: log}
}

const (
	// acceptedByEndedRun is the type of Temporal's error for an update that an execution accepted and did not complete.
	acceptedByEndedRun = "AcceptedUpdateCompletedWorkflow"
	// Timeout bounds an update of a run. A control process must carry it out.
	Timeout = 15 * time.Second
	// CrowdedPause is the wait before an update is sent again to a run that is continuing as new or has too many updates in
	// flight.
	CrowdedPause = 50 * time.Millisecond
)

// Send sends an update to the workflow of an open run and waits for its result. The error is NotFound for an unknown task,
// and Aborted if the state of the run or task forbids the update. Temporal allows 10 updates of a run in flight over all
// gateways; further ones wait.
func (u *Updater) Send(ctx context.Context, id, name string, arg any) error {
	giveBack, err := u.slots.acquire(ctx, id)
	if err != nil {
		return fmt.Errorf("%s: run %s: %w", name, id, err)
	}
	defer giveBack()
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	for key := uuid.NewString(); ; {
		err := u.sendOnce(ctx, id, &key, name, arg)
		if err == nil || !rpcerror.Is[*serviceerror.NotFound](err) {
			return u.refusalError(ctx, id, name, err)
		}
		if err = u.ClosedError(ctx, id); rpcerror.CodeOf(err) != connect.CodeUnavailable || !sleep(ctx) {
			return err
		}
	}
}

// SendOnce sends an update and returns the reply of the run. While the run is busy or continuing as new, it repeats the update
// until Timeout. The error of a run that ended meanwhile is a serviceerror.NotFound.
func (u *Updater) SendOnce(ctx context.Context, id, name string, arg any) error {
	key := uuid.NewString()
	return u.sendOnce(ctx, id, &key, name, arg)
}

// sendOnce sends an update under a key, by which the run recognizes it if its answer is lost. An answer that asks to send the
// update again replaces the key, because Temporal would repeat that answer.
func (u *Updater) sendOnce(ctx context.Context, id string, key *string, name string, arg any) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	for {
		err := u.send(ctx, id, *key, name, arg)
		if IsRefusal(err, names.RunContinuingError) {
			*key = uuid.NewString()
		}
		switch {
		case IsRefusal(err, acceptedByEndedRun):
			return serviceerror.NewNotFound(fmt.Sprintf("run %s ended before it carried out %s", id, name))
		case !isTransient(err):
			return err
		case !sleep(ctx):
			return connect.NewError(connect.CodeUnavailable, fmt.Errorf("run %s is busy or continuing as new, and has not carried out %s; try again: %w", id, name, err))
		}
	}
}

// isTransient reports whether an update that failed with err succeeds or is refused once the run has made progress.
func isTransient(err error) bool {
	return IsRefusal(err, names.RunContinuingError) ||
		// The run has too many updates in flight or is continuing as new.
		rpcerror.Is[*serviceerror.ResourceExhausted](err) ||
		// The run tried to end while the update arrived. Temporal makes the run look at the update first.
		rpcerror.Is[*serviceerror.WorkflowNotReady](err)
}

// sleep waits for CrowdedPause, or returns false if ctx ends before.
func sleep(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(CrowdedPause):
		return true
	}
}

func (u *Updater) send(ctx context.Context, id, key, name string, arg any) error {
	handle, err := u.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateID: key, UpdateName: name, Args: []any{arg}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, nil)
}

// IsRefusal reports whether err is a run's refusal of an update with the given error type.
func IsRefusal(err error, kind string) bool {
	said, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && said.Type() == kind
}

// refusalError maps the error of an update to a Connect error. It returns nil for nil.
func (u *Updater) refusalError(ctx context.Context, id, name string, err error) error {
	said, ok := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case err == nil || rpcerror.Is[*connect.Error](err):
		return err
	case !ok && ctx.Err() != nil:
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("run %s does not answer; is a gateway with a control role running?: %w", id, err))
	case !ok:
		return fmt.Errorf("%s: run %s: %w", name, id, err)
	case said.Type() == names.UnknownTaskError:
		return u.unknownTaskError(ctx, id, said.Message())
	// This is what the SDK returns for a workflow without the handler; the error has no type of its own.
	case strings.Contains(said.Message(), "unknown update"):
		return rpcerror.WrongState("run %s was started by an older version that does not support %s", id, name)
	case said.Type() == names.NotAllowedError:
		return connect.NewError(connect.CodePermissionDenied, fmt.Errorf("run %s: %s", runOf(id), said.Message()))
	case said.Type() == names.InvalidInputError:
		return rpcerror.Invalid("run %s: %s", runOf(id), said.Message())
	case said.Type() == names.RunEndedError:
		return rpcerror.WrongState("run %s has just ended", id)
	}
	return rpcerror.WrongState("run %s: %s", runOf(id), said.Message())
}

// runOf returns the id of the run of a workflow, which may be the child of a run that carries instances.
func runOf(id string) string {
	f, _ := names.ParseFanOutID(id)
	return f.Run
}

// unknownTaskError returns the error for a task that a run does not have. It suggests similar names if the run can be read.
func (u *Updater) unknownTaskError(ctx context.Context, id, said string) error {
	v, err := u.reader.Read(ctx, id)
	task, quoted := strings.CutPrefix(said, "task \"")
	task, _, closed := strings.Cut(task, "\"")
	if err != nil || !quoted || !closed {
		return rpcerror.NotFound("run %s: %s", id, said)
	}
	return v.NoTask(task)
}

// ClosedError returns the error for a request that needs an open run.
func (u *Updater) ClosedError(ctx context.Context, id string) error {
	part, isPart := names.ParseFanOutID(id)
	desc, err := u.describe(ctx, id, isPart)
	if err != nil {
		return err
	}
	status := desc.GetWorkflowExecutionInfo().GetStatus()
	switch {
	case runview.IsOpen(status):
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("run %s is continuing as new; try again", runOf(id)))
	case isPart:
		return rpcerror.WrongState("run %s: the instances from %s on have ended", part.Run, names.InstanceName(part.Task, part.From))
	}
	state, why := runview.StateOf(status), ""
	if state == v1.RunFailed { // a rejected run is one of these in Temporal
		if v, err := u.reader.Read(ctx, id); err == nil && v.Run.GetState() == v1.RunRejected {
			state, why = v1.RunRejected, ": "+v.Run.GetError()
		}
	}
	ended := map[string]string{
		v1.RunCompleted: v1.RunCompleted, v1.RunFailed: v1.RunFailed, v1.RunCancelled: "been cancelled", v1.RunRejected: "been rejected",
	}[state]
	return rpcerror.WrongState("run %s has already %s%s", id, ended, why)
}

// describe returns Temporal's description of a run, or of a child of a run that carries instances.
func (u *Updater) describe(ctx context.Context, id string, isPart bool) (*runview.Description, error) {
	if isPart {
		return u.client.DescribeWorkflowExecution(ctx, id, "")
	}
	return u.reader.Describe(ctx, id)
}

// FindChild returns the id of the child of a run that carries an instance, or "" if none does.
func (u *Updater) FindChild(ctx context.Context, id, instance string) string {
	task, index, ok := names.ParseInstanceName(instance)
	if !ok {
		return ""
	}
	answer, err := u.reader.QueryInstances(ctx, id, &historyv1.InstancesRequest{Task: task, From: int32(index), Limit: 1})
	if err != nil {
		u.log.Debug("cannot find the child of a run that carries an instance", "run", id, "instance", instance, "error", err)
	}
	return answer.GetChild()
}
