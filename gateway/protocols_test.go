package gateway

import (
	"errors"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

// TestEachProtocolDrivesARun covers the lifecycle of a run with each kind of client.
func TestEachProtocolDrivesARun(t *testing.T) {
	t.Parallel()
	f := start(t)
	for name, option := range map[string]connect.ClientOption{
		"connect": connect.WithProtoJSON(), "grpc": connect.WithGRPC(), "grpc-web": connect.WithGRPCWeb(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fixture{f.Gateway, f.server, f.dial(t, option)}
			client := f.client
			id := f.submit(t, "life-"+name, "build", "test")
			run := f.get(t, id)
			if task := run.GetTasks()["build"]; run.GetName() != "life-"+name || run.GetState() != "running" || task.GetState() != "pending" || task.GetResult().GetExitCode() != -1 || task.GetResult().GetOutput() == nil {
				t.Errorf("the run is %v", run)
			}
			w := f.watch(t, id)
			w.until(t, "both tasks are shown", func() bool { return len(w.run.GetTasks()) == 2 })
			planned := answer(t, client.PlanRun, &v1.PlanRunRequest{Submit: submitRequest(document("life-"+name, "build", "test"))})
			if len(planned.GetTasks()) != 2 || planned.GetTasks()[0].GetPlacement() != "1 of 2 nodes" {
				t.Errorf("the plan is %v", planned)
			}
			do(t, client.PauseRun, &v1.PauseRunRequest{Id: id})
			refused(t, "pause twice", client.PauseRun, &v1.PauseRunRequest{Id: id}, connect.CodeAborted)
			do(t, client.ResumeRun, &v1.ResumeRunRequest{Id: id})
			set(t, id, "build", 1, &v1.Task{State: "completed", Node: "a", AssignedAt: timestamppb.Now(), Result: &v1.TaskResult{}})
			writeLog(t, f.config.Store, id, "build", 0, 1, "hello\n")
			do(t, client.CancelRun, &v1.CancelRunRequest{Id: id, Reason: "enough"})
			for w.next() {
			}
			if err := w.stream.Err(); err != nil || w.run.GetState() != "cancelled" {
				t.Errorf("the watched run ended %v, %v", w.run, err)
			}
			if got := readLogs(t, f.logs(t, &v1.StreamRunLogsRequest{Id: id, Follow: true})); got["build"] != "hello\n" {
				t.Errorf("the log is %q", got)
			}
			eventually(t, "the run is listed", func() bool {
				ids, _ := f.list(t, &v1.ListRunsRequest{Name: "life-" + name, State: "cancelled"})
				return len(ids) == 1 && ids[0] == id
			})
		})
	}
}

// TestUnknownRunIsReportedAsSuch asks for runs that do not exist. The error tells that it is the run that is missing.
func TestUnknownRunIsReportedAsSuch(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, id := range []string{"nothing-00000000", "No Such Run", "x' OR 'a' = 'a"} {
		if err := refused(t, "get "+id, f.client.GetRun, &v1.GetRunRequest{Id: id}, connect.CodeNotFound); !missingRun(err) {
			t.Errorf("get %s: %v", id, err)
		}
		printed := f.logs(t, &v1.StreamRunLogsRequest{Id: id})
		printed.Receive()
		wantCode(t, "logs "+id, printed.Err(), connect.CodeNotFound)
	}
	refused(t, "get without an id", f.client.GetRun, &v1.GetRunRequest{}, connect.CodeInvalidArgument)
}

// missingRun reports whether an error has the detail for a missing run.
func missingRun(err error) bool {
	refused, _ := errors.AsType[*connect.Error](err)
	if refused == nil || len(refused.Details()) != 1 {
		return false
	}
	value, err := refused.Details()[0].Value()
	missing, ok := value.(*errdetails.ResourceInfo)
	return err == nil && ok && missing.GetResourceType() == "run"
}
