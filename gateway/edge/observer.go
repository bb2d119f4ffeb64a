package edge

import (
	"context"
	"slices"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// writes are the procedures that change something.
var writes = []string{
	switchyardv1connect.RunServiceSubmitRunProcedure,
	switchyardv1connect.RunServiceCancelRunProcedure,
	switchyardv1connect.RunServiceRetryDeadLetterProcedure,
	switchyardv1connect.RunServicePurgeDeadLetterProcedure,
	switchyardv1connect.RunServiceRetryRunProcedure,
	switchyardv1connect.RunServiceRerunRunProcedure,
	switchyardv1connect.RunServicePauseRunProcedure,
	switchyardv1connect.RunServiceResumeRunProcedure,
	switchyardv1connect.RunServiceHoldTaskProcedure,
	switchyardv1connect.RunServiceReleaseTaskProcedure,
	switchyardv1connect.RunServiceCancelTaskProcedure,
	switchyardv1connect.RunServicePauseTaskProcedure,
	switchyardv1connect.RunServiceResumeTaskProcedure,
	switchyardv1connect.RunServiceKillTaskProcedure,
	switchyardv1connect.RunServiceApproveTaskProcedure,
	switchyardv1connect.RunServiceRejectTaskProcedure,
	switchyardv1connect.WorkflowServicePutWorkflowProcedure,
	switchyardv1connect.WorkflowServiceDeleteWorkflowProcedure,
	switchyardv1connect.NodeServiceDrainNodeProcedure,
	switchyardv1connect.NodeServiceUndrainNodeProcedure,
	switchyardv1connect.NodeServiceRemoveNodeProcedure,
	switchyardv1connect.BlobServicePutBlobProcedure,
}

// Observer is the interceptor that, if it is true, refuses procedures that change something. None of them is a stream.
type Observer bool

var _ connect.Interceptor = Observer(false)

// WrapUnary refuses calls of writes.
func (o Observer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	if !o {
		return next
	}
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if slices.Contains(writes, req.Spec().Procedure) {
			return nil, rpcerror.WrongState("this gateway is an observer and changes nothing; use another one, or start it with --role auto")
		}
		return next(ctx, req)
	}
}

// WrapStreamingHandler lets streams pass.
func (o Observer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// WrapStreamingClient is never called on a server.
func (o Observer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}
