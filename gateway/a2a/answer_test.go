package a2a

import (
	"context"
	"errors"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// fakeRuns records the last decision or cancellation and answers every call with NotFound.
type fakeRuns struct {
	switchyardv1connect.RunServiceClient
	last string
}

func (f *fakeRuns) CancelRun(_ context.Context, req *connect.Request[v1.CancelRunRequest]) (*connect.Response[v1.CancelRunResponse], error) {
	f.last = "cancel " + req.Msg.GetId() + " " + req.Msg.GetReason() + req.Msg.GetRequestId()
	return nil, connect.NewError(connect.CodeNotFound, errors.New("there is no run"))
}

func (f *fakeRuns) ApproveTask(_ context.Context, req *connect.Request[v1.ApproveTaskRequest]) (*connect.Response[v1.ApproveTaskResponse], error) {
	f.last = "approve " + req.Msg.GetTask()
	return nil, connect.NewError(connect.CodeNotFound, errors.New("there is no instance"))
}

// TestApprovalInstancesAreDecidedByName decides the instances of a fan-out, with and without naming one.
func TestApprovalInstancesAreDecidedByName(t *testing.T) {
	t.Parallel()
	count := int32(2)
	o := &observation{run: &v1.Run{Id: "r", State: v1.RunPendingApproval}}
	o.update(map[string]*v1.Task{"gate": {Type: v1.TypeApproval, State: v1.TaskRunning, Count: &count, Counts: map[string]int32{v1.TaskPaused: 1}}})
	if text := o.text(); !strings.HasPrefix(text, "gate asks for approval: 1 of 2 instances are pending") || !isInterrupted(o.state()) {
		t.Errorf("%s: %s", o.state(), text)
	}
	runs := &fakeRuns{}
	a := &agent{Services: Services{Runs: runs}}
	for task, want := range map[string]string{"": "instances of gate are pending; name one, such as gate[0]", "gate": "such as gate[0]", "door[0]": "is not a pending approval", "gate[1]": "there is no instance"} {
		if err := a.decideTask(t.Context(), o, decision{approve: true, task: task}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", task, err, want)
		}
	}
	for _, d := range []decision{{approve: true, task: "gate[1]"}, {approve: true, input: &structpb.Struct{}}, {task: "gate[1]"}} {
		if err := a.decideRun(t.Context(), "r", d); err == nil || !strings.Contains(err.Error(), "waits for the approval of the whole run") {
			t.Errorf("%+v of a run: %v", d, err)
		}
	}
	if runs.last != "approve gate[1]" {
		t.Error(runs.last)
	}
}
