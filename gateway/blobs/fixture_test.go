package blobs

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"
	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protodelim"

	"switchyard/activities/grants"
	"switchyard/activities/logs"
	"switchyard/activities/store"
	"switchyard/activities/store/storetest"
	"switchyard/dev/testneeds"
	"switchyard/gateway/auth"
	"switchyard/gateway/nodeaccess"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/names"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// fixture is the service over a store.
type fixture struct {
	Service
	server *server
}

func start(t *testing.T, location string) *fixture {
	t.Helper()
	kept := storetest.Open(t, location)
	temporal := &server{}
	access := nodeaccess.New(grants.New(kept), nodeaccess.Attempts{Client: temporal}, runview.NewReader(temporal, "default", kept, slog.New(slog.DiscardHandler)))
	return &fixture{Service{Store: kept, Access: access}, temporal}
}

// everyone is the caller of a gateway without authentication, where every caller may do everything.
var everyone = &auth.Principal{Role: v1.Role_ROLE_ADMIN, Kind: auth.KindNone}

func node(name string) *auth.Principal {
	return &auth.Principal{Name: "worker-" + name, Role: v1.Role_ROLE_NODE, Node: name, Kind: auth.KindToken}
}

// openAs opens the service as a store for a caller.
func (f *fixture) openAs(t *testing.T, caller *auth.Principal) *store.Store {
	t.Helper()
	withCode := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			res, err := next(auth.With(ctx, caller), req)
			return res, rpcerror.ToConnect(err)
		}
	})
	mux := http.NewServeMux()
	mux.Handle(switchyardv1connect.NewBlobServiceHandler(f.Service, connect.WithInterceptors(withCode), connect.WithReadMaxBytes(MaxMessageBytes)))
	served := httptest.NewUnstartedServer(mux)
	served.Config.Protocols = new(http.Protocols)
	served.Config.Protocols.SetHTTP1(true)
	served.Config.Protocols.SetUnencryptedHTTP2(true)
	served.Start()
	t.Cleanup(served.Close)
	return storetest.Open(t, served.URL)
}

// server is a Temporal server with the run "running", whose task build runs on node a in chain c1 until it has ended.
type server struct {
	client.Client // nothing else of it is used

	hasEnded bool
}

func (s *server) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if id != "running" {
		return nil, serviceerror.NewNotFound("there is no workflow " + id)
	}
	desc := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "c1"}, Type: &commonpb.WorkflowType{Name: names.RunWorkflow},
		Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}
	if !s.hasEnded {
		desc.PendingActivities = []*workflowpb.PendingActivityInfo{{
			ActivityId: names.AttemptID("build", 1), ActivityType: &commonpb.ActivityType{Name: names.ExecuteActivity}, State: enumspb.PENDING_ACTIVITY_STATE_STARTED,
			ActivityOptions: &activitypb.ActivityOptions{TaskQueue: &taskqueuepb.TaskQueue{Name: names.NodeQueue("a", names.CPULane)}},
		}}
	}
	return desc, nil
}

func (s *server) GetWorkflowHistory(context.Context, string, string, bool, enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	return firstEvent{}
}

// firstEvent is a history that consists of the start of the chain c1.
type firstEvent struct{}

func (firstEvent) HasNext() bool { return true }

func (firstEvent) Next() (*historypb.HistoryEvent, error) {
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{FirstExecutionRunId: "c1"},
	}}, nil
}

// logChunk returns a log chunk with one entry.
func logChunk(t *testing.T, text string) []byte {
	t.Helper()
	var chunk bytes.Buffer
	if _, err := protodelim.MarshalTo(&chunk, &v1.LogEntry{Stream: logs.Stdout, Data: []byte(text)}); err != nil {
		t.Fatal(err)
	}
	return chunk.Bytes()
}
