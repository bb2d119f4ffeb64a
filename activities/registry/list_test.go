package registry

import (
	"context"
	"errors"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// halfServer lists the nodes a, b and c, describes a, and fails to describe b. Node c has left meanwhile.
type halfServer struct{ client.Client }

func nodeInfo(name string) *workflowpb.WorkflowExecutionInfo {
	return &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: names.NodeWorkflowID(name)}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
}

func (halfServer) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{nodeInfo("a"), nodeInfo("b"), nodeInfo("c")}}, nil
}

func (halfServer) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	switch id {
	case names.NodeWorkflowID("a"):
		return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: nodeInfo("a")}, nil
	case names.NodeWorkflowID("b"):
		return nil, errors.New("its shard is lost")
	}
	return nil, serviceerror.NewNotFound("none")
}

// TestNodeThatCannotBeReadHidesNoOther checks that the list shows a node that the server cannot describe as stale.
func TestNodeThatCannotBeReadHidesNoOther(t *testing.T) {
	t.Parallel()
	nodes, err := New(halfServer{}).List(t.Context())
	if err != nil || len(nodes) != 2 || nodes[0].GetName() != "a" || nodes[1].GetName() != "b" {
		t.Fatalf("%v, %v", nodes, err)
	}
	if b := nodes[1]; b.GetState() != v1.NodeStale || !strings.Contains(b.GetReason(), "its shard is lost") {
		t.Errorf("%v", b)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(halfServer{}).List(ctx); err == nil {
		t.Error("a cancelled list looks whole")
	}
}
