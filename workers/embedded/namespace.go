package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	// readyProbe is a workflow ID that is never used. A not-found error for it proves that the server works down to its
	// store.
	readyProbe    = "switchyard:ready"
	readyInterval = 5 * time.Millisecond
	// readyLimit bounds a start whose context has no deadline.
	readyLimit = 30 * time.Second
)

// dial opens a connection to the frontend. Calls on it fail until the frontend listens.
func dial(address string) (*grpc.ClientConn, error) {
	const maxMessage = 64 * 1024 * 1024
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
}

// awaitNamespace returns once the namespace answers calls that reach its workflows.
func awaitNamespace(ctx context.Context, conn *grpc.ClientConn, name string) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	client := workflowservice.NewWorkflowServiceClient(conn)
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	for {
		_, err := client.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: name,
			Execution: &common.WorkflowExecution{WorkflowId: readyProbe},
		}, grpc.WaitForReady(true))
		err = serviceerror.FromStatus(status.Convert(err))
		if _, ok := errors.AsType[*serviceerror.NotFound](err); ok || err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for namespace %s: %w", name, errors.Join(context.Cause(ctx), err))
		}
	}
}

// reconcileNamespace updates a namespace from an earlier start to the options: its retention, and search attributes
// that have been added since.
func reconcileNamespace(ctx context.Context, conn *grpc.ClientConn, opts Options) error {
	workflows := workflowservice.NewWorkflowServiceClient(conn)
	operator := operatorservice.NewOperatorServiceClient(conn)
	described, err := workflows.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: opts.Namespace})
	if err != nil {
		return fmt.Errorf("namespace %s: %w", opts.Namespace, err)
	}
	if described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration() != opts.Retention {
		if _, err := workflows.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
			Namespace: opts.Namespace,
			Config:    &namespace.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(opts.Retention)},
		}); err != nil {
			return fmt.Errorf("retention of namespace %s: %w", opts.Namespace, err)
		}
	}
	listed, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: opts.Namespace})
	if err != nil {
		return fmt.Errorf("search attributes of namespace %s: %w", opts.Namespace, err)
	}
	missing := maps.Clone(opts.SearchAttributes)
	maps.DeleteFunc(missing, func(name string, _ enums.IndexedValueType) bool {
		_, ok := listed.GetCustomAttributes()[name]
		return ok
	})
	if len(missing) == 0 {
		return nil
	}
	if _, err := operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: opts.Namespace, SearchAttributes: missing,
	}); err != nil {
		return fmt.Errorf("search attributes of namespace %s: %w", opts.Namespace, err)
	}
	return nil
}
