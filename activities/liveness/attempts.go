package liveness

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Attempts looks up whether runs still wait for attempts. It is safe for concurrent use.
type Attempts struct {
	Client client.Client
	// CheckFleet returns an error if the server is not certainly the one that started the runs, and their absence
	// therefore proves nothing.
	CheckFleet func(context.Context) error
}

// IsOpen reports whether the run of an attempt is open and waits for the attempt or may still start it: its task or instance has
// not ended and has no later attempt. IsOpen ignores the node, fleet and claim of the identity. If it returns an error, the
// answer is unknown.
func (a Attempts) IsOpen(ctx context.Context, id executor.Identity) (bool, error) {
	return a.look(ctx, id, false)
}

// IsClaimed reports whether the run of an attempt is open and waits for this very dispatch of it, which the claim of the identity
// names. IsClaimed ignores the node and the fleet. If it returns an error, the answer is unknown.
func (a Attempts) IsClaimed(ctx context.Context, id executor.Identity) (bool, error) {
	return a.look(ctx, id, true)
}

func (a Attempts) look(ctx context.Context, id executor.Identity, byClaim bool) (bool, error) {
	open, err := a.isOpen(ctx, id, byClaim)
	if err != nil {
		return false, fmt.Errorf("look whether run %s waits for attempt %d of task %s: %w", id.Run, id.Attempt, id.Task, err)
	}
	return open, nil
}

func (a Attempts) isOpen(ctx context.Context, id executor.Identity, byClaim bool) (bool, error) {
	switch open, err := a.isRunOpen(ctx, id.Run); {
	case err != nil || !open:
		return false, err
	case id.Index >= 0:
		return a.waitsForInstance(ctx, id, byClaim)
	}
	return a.waitsForTask(ctx, id, byClaim)
}

// IsGenerationOpen reports whether the generation of a run is open that an identity names by run, chain and generation. If it
// returns an error, the answer is unknown.
func (a Attempts) IsGenerationOpen(ctx context.Context, id executor.Identity) (bool, error) {
	open, err := a.isRunOpen(ctx, id.Run)
	if open && err == nil {
		var status historyv1.StatusResponse
		err = a.query(ctx, id.Run, names.StatusQuery, &historyv1.StatusRequest{MaxBytes: 1}, &status)
		open = !isOther(&status, id)
	}
	if err != nil {
		return false, fmt.Errorf("look whether run %s is open: %w", id.Run, err)
	}
	return open, nil
}

// isRunOpen reports whether a run is open.
func (a Attempts) isRunOpen(ctx context.Context, run string) (bool, error) {
	desc, err := a.Client.DescribeWorkflowExecution(ctx, run, "")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return false, a.CheckFleet(ctx)
	}
	if err != nil {
		return false, err
	}
	info := desc.GetWorkflowExecutionInfo()
	switch info.GetStatus() {
	case enums.WORKFLOW_EXECUTION_STATUS_RUNNING, enums.WORKFLOW_EXECUTION_STATUS_PAUSED, enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return true, nil
	}
	return false, nil
}

// waitsForTask reports whether a run waits for an attempt of a task that is not an instance.
func (a Attempts) waitsForTask(ctx context.Context, id executor.Identity, byClaim bool) (bool, error) {
	for since := int64(0); ; {
		var status historyv1.StatusResponse
		if err := a.query(ctx, id.Run, names.StatusQuery, &historyv1.StatusRequest{Since: since}, &status); err != nil {
			return false, err
		}
		if isOther(&status, id) {
			return false, nil
		}
		if task, ok := status.GetRun().GetTasks()[id.Task]; ok {
			return waits(task.GetState(), task.GetNotice(), task.GetAttempt(), id) && (!byClaim || status.GetClaims()[id.Task] == id.Claim), nil
		}
		if !status.GetMore() || status.GetRevision() <= since {
			return false, nil // the run has no such task
		}
		since = status.GetRevision()
	}
}

// waitsForInstance reports whether a run waits for an attempt of an instance. An instance that another workflow runs counts as
// waited for while the run is open.
func (a Attempts) waitsForInstance(ctx context.Context, id executor.Identity, byClaim bool) (bool, error) {
	var status historyv1.StatusResponse
	if err := a.query(ctx, id.Run, names.StatusQuery, &historyv1.StatusRequest{MaxBytes: 1}, &status); err != nil {
		return false, err
	}
	if isOther(&status, id) {
		return false, nil
	}
	var found historyv1.InstancesResponse
	req := &historyv1.InstancesRequest{Task: id.Task, From: id.Index, Limit: 1}
	if err := a.query(ctx, id.Run, names.InstancesQuery, req, &found); err != nil {
		return false, err
	}
	for _, i := range found.GetInstances() {
		if i.GetIndex() == id.Index {
			return waits(i.GetState(), i.GetNotice(), i.GetAttempt(), id) && (!byClaim || found.GetClaims()[id.Index] == id.Claim), nil
		}
	}
	return true, nil
}

// isOther reports whether an answer is from another run, or from another generation of the run, than the attempt.
func isOther(status *historyv1.StatusResponse, id executor.Identity) bool {
	return id.Chain != "" && status.GetChain() != "" && status.GetChain() != id.Chain || status.GetRun().GetGeneration() != id.Generation
}

// waits reports whether a task with the given state, notice and newest attempt waits for the attempt id.
func waits(state, notice string, newest int32, id executor.Identity) bool {
	return (!v1.IsTaskTerminal(state) || v1.IsTaskAway(state, notice)) && newest == id.Attempt
}

// query queries the newest execution of a workflow and decodes the answer.
func (a Attempts) query(ctx context.Context, id, name string, req, answer proto.Message) error {
	value, err := a.Client.QueryWorkflow(ctx, id, "", name, req)
	if err != nil {
		return err
	}
	return value.Get(answer)
}
