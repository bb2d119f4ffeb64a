package runlogs_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store/storetest"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runlogs"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// emptyServer is a Temporal server without workflows.
type emptyServer struct {
	client.Client // nothing else of it is used
}

// DescribeWorkflowExecution finds nothing.
func (emptyServer) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, serviceerror.NewNotFound("there is no workflow " + id)
}

// TestTreeNamesDeletedChildRuns checks that the logs of a run come first, and that a notice stands for each child run that has
// been deleted, in the order in which the tasks started.
func TestTreeNamesDeletedChildRuns(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "mem://")
	write(t, s, printed{"shell", 0, 0, 1, nil})
	at := func(second int64) *timestamppb.Timestamp { return timestamppb.New(time.Unix(second, 0)) }
	v := runview.NewView("ci-0k")
	v.Update([]*historyv1.StatusResponse{{
		Run: &v1.Run{Id: "ci-0k", State: v1.RunCompleted, Tasks: map[string]*v1.Task{
			"a-second": {Type: v1.TypeRun, State: v1.TaskCompleted, StartedAt: at(2), ChildRun: "child-2"},
			"b-first":  {Type: v1.TypeRun, State: v1.TaskCompleted, StartedAt: at(1), ChildRun: "child-1"},
			"never":    {Type: v1.TypeRun, State: v1.TaskSkipped},
			"shell":    {Type: v1.TypeShell, State: v1.TaskCompleted, StartedAt: at(3), AssignedAt: at(3)},
		}},
		Claims: map[string]int32{"shell": 1}, TaskCount: 4, Revision: 1,
	}}, nil)
	reader := runview.NewReader(emptyServer{}, "default", s, nil)
	for task, want := range map[string][]string{
		"":         {"shell: shell g0 a0", "b-first: run child-1 has been deleted", "a-second: run child-2 has been deleted"},
		"a-second": {"a-second: run child-2 has been deleted"},
		"shell":    {"shell: shell g0 a0"},
	} {
		var got []string
		tree := runlogs.NewTree(reader, s, &v1.StreamRunLogsRequest{Task: task, Children: true}, func(m *v1.StreamRunLogsResponse) error {
			for _, e := range m.GetEntries() {
				got = append(got, e.GetTask()+": "+strings.TrimSpace(string(e.GetData())))
			}
			return nil
		})
		if err := tree.Send(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %q: %q, want %q", task, got, want)
		}
	}
}

func TestTreeRefusesOptionsOfASingleRun(t *testing.T) {
	t.Parallel()
	if err := runlogs.ValidateTree(&v1.StreamRunLogsRequest{Task: "build", Stream: "stderr"}); err != nil {
		t.Error(err)
	}
	for _, req := range []*v1.StreamRunLogsRequest{{Follow: true}, {Attempt: proto.Int32(0)}, {Generation: proto.Int32(0)}} {
		if err := runlogs.ValidateTree(req); rpcerror.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%v: %v", req, err)
		}
	}
}
