package schedules

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/workflows/names"
)

const (
	// changeLease is the longest time for which one change keeps out the others. It exceeds changeWait.
	changeLease = 30 * time.Second
	// changeTurn bounds the wait for other changes.
	changeTurn = time.Minute
)

// Change calls change with the description of a schedule, which includes all earlier changes, while no other caller changes the
// schedule. Otherwise changes that are based on the same description would undo one another, and of two patches that arrive in the
// same moment Temporal applies only the last one. It returns Unavailable if other changes take too long.
//
// An execution of the workflow ScheduleChange, which nothing carries out, is open during the change.
func (s *Schedules) Change(ctx context.Context, id string, change func(*workflowservice.DescribeScheduleResponse) error) error {
	lock := &commonpb.WorkflowExecution{WorkflowId: names.ScheduleChangeID(id)}
	for until := s.now().Add(changeTurn); ; {
		started, err := s.service.StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{
			Namespace: s.namespace, WorkflowId: lock.GetWorkflowId(), WorkflowType: &commonpb.WorkflowType{Name: names.ScheduleChange},
			TaskQueue: &taskqueuepb.TaskQueue{Name: names.ScheduleChange}, WorkflowExecutionTimeout: durationpb.New(changeLease),
			WorkflowIdReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, WorkflowIdConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
			RequestId: uuid.NewString(),
		})
		if err == nil {
			lock.RunId = started.GetRunId()
			break
		}
		if _, taken := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); !taken {
			return err
		}
		if s.now().After(until) {
			return serviceerror.NewUnavailablef("other changes of the schedule have been under way for %s; try again later", changeTurn)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(changePause/2 + rand.N(changePause)):
		}
	}
	defer s.endChange(context.WithoutCancel(ctx), lock)
	d, err := s.Describe(ctx, id)
	if err != nil {
		return err
	}
	return change(d)
}

// endChange lets the next change begin, and removes the traces of this one. If it fails, changeLease ends the change.
func (s *Schedules) endChange(ctx context.Context, lock *commonpb.WorkflowExecution) {
	ctx, cancel := context.WithTimeout(ctx, changeWait)
	defer cancel()
	_, err := s.service.TerminateWorkflowExecution(ctx, &workflowservice.TerminateWorkflowExecutionRequest{
		Namespace: s.namespace, WorkflowExecution: lock, Reason: "the schedule is changed",
	})
	if err == nil {
		_, _ = s.service.DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{Namespace: s.namespace, WorkflowExecution: lock})
	}
}
