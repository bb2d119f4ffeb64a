package runretry

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"connectrpc.com/connect"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/gateway/auth"
	"switchyard/gateway/runview"
	"switchyard/gateway/submission"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dataconverter"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// Reopener starts new generations of closed runs.
type Reopener struct {
	client     client.Client
	namespace  string
	reader     *runview.Reader
	statuses   statusKeeper
	partitions partitionEnder
	approvals  approvals
}

// approvals decides which changed runs need an approval. It is safe for concurrent use.
type approvals interface {
	// RequireApproval makes a run wait for the approval of an operator if the caller needs one for it.
	RequireApproval(ctx context.Context, in *historyv1.RunInput) error
}

// Reopen starts a new generation of a closed run with the plan in again and, if limits is not empty, new limits for its
// agents. The request id is that of the closed execution, so a repeated request returns the execution that was started, even
// if that one has ended by now. The error is AlreadyExists if that execution was started with another plan.
func (r Reopener) Reopen(ctx context.Context, desc *runview.Description, again *historyv1.RunInput, limits map[string]*v1.AgentLimits) error {
	info := desc.GetWorkflowExecutionInfo()
	first, err := r.reader.Input(ctx, info.GetExecution())
	if err != nil {
		return err
	}
	status, err := r.statuses.ensureStored(ctx, desc, first.GetChain(), again.GetGeneration()-1)
	if err != nil {
		return err
	}
	if err := r.partitions.cancel(ctx, status); err != nil {
		return err
	}
	closed, err := r.reader.FirstEvent(ctx, info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId(), enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if err != nil {
		return err
	}
	next := proto.CloneOf(first) // with its chain, which leads to what earlier generations have left
	next.Generation, next.Retry, next.Rerun, next.State = again.GetGeneration(), again.GetRetry(), again.GetRerun(), nil
	next.By, next.Terminated = auth.From(ctx).Name, ""
	definition := withAgentLimits(next.GetDefinition(), limits)
	if !proto.Equal(definition, next.GetDefinition()) || len(again.GetRerun().GetFrom()) > 0 { // an approval covers neither
		next.Definition = definition
		next.DefinitionVersion++
		if err := r.approvals.RequireApproval(ctx, next); err != nil {
			return err
		}
	}
	if runview.WasClosedFromOutside(info.GetStatus()) {
		next.Terminated = info.GetExecution().GetRunId()
	}
	if next, err = submission.Pack(next); err != nil {
		return err
	}
	payloads, err := dataconverter.New().ToPayloads(next)
	if err != nil {
		return fmt.Errorf("encode the input of a run: %w", err)
	}
	memo := &commonpb.Memo{Fields: maps.Clone(info.GetMemo().GetFields())}
	delete(memo.Fields, names.ProblemMemo) // it belongs to the previous generation
	attributes, err := visibility.Decode(info.GetSearchAttributes()).Reopened().Encode()
	if err != nil {
		return err
	}
	started, err := r.client.WorkflowService().StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{
		Namespace:                r.namespace,
		WorkflowId:               info.GetExecution().GetWorkflowId(),
		WorkflowType:             &commonpb.WorkflowType{Name: names.RunWorkflow},
		TaskQueue:                &taskqueuepb.TaskQueue{Name: names.ControlQueue},
		Input:                    payloads,
		WorkflowTaskTimeout:      durationpb.New(submission.TaskTimeout),
		RequestId:                "reopen-" + info.GetExecution().GetRunId(),
		WorkflowIdReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIdConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		Memo:                     memo,
		SearchAttributes:         attributes,
		UserMetadata:             closed.GetUserMetadata(),
	})
	if err != nil {
		return err
	}
	got, err := r.reader.Input(ctx, &commonpb.WorkflowExecution{WorkflowId: info.GetExecution().GetWorkflowId(), RunId: started.GetRunId()})
	if err != nil {
		return err
	}
	if !slices.Equal(got.GetRetry(), again.GetRetry()) || !proto.Equal(got.GetRerun(), again.GetRerun()) || !proto.Equal(got.GetDefinition(), definition) {
		return connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("another request has already restarted run %s with other tasks", info.GetExecution().GetWorkflowId()))
	}
	return nil
}
