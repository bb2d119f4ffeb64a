package gateway

import (
	"errors"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

// TestEachProtocolDrivesARun covers the lifecycle of a run with each kind of client. It uses the name "last", so no other test
// may start a run meanwhile.
func TestEachProtocolDrivesARun(t *testing.T) {
	f := start(t)
	for name, option := range map[string]connect.ClientOption{
		"connect":  connect.WithProtoJSON(),
		"grpc":     connect.WithGRPC(),
		"grpc-web": connect.WithGRPCWeb(),
	} {
		t.Run(name, func(t *testing.T) {
			client := f.dial(t, option)
			input, _ := structpb.NewStruct(map[string]any{"channel": "beta"})
			submitted, err := client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{
				Source: &v1.SubmitRunRequest_Document{Document: document("life-"+name, "build", "test")},
				Input:  input,
			}))
			if err != nil {
				t.Fatal(err)
			}
			id := submitted.Msg.GetId()
			last, err := client.GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: "last"}))
			if err != nil {
				t.Fatal(err)
			}
			run := last.Msg.GetRun()
			if run.GetId() != id || run.GetName() != "life-"+name || run.GetState() != "running" {
				t.Fatalf("last is %v", run)
			}
			if got := run.GetInput().AsMap()["channel"]; got != "beta" {
				t.Errorf("input is %v", run.GetInput())
			}
			task := run.GetTasks()["build"]
			if task.GetState() != "pending" || task.GetResult().GetExitCode() != -1 || task.GetResult().GetOutput() == nil {
				t.Errorf("a task that has not run is %v", task)
			}

			watched, err := client.WatchRun(t.Context(), connect.NewRequest(&v1.WatchRunRequest{Id: id}))
			if err != nil {
				t.Fatal(err)
			}
			if !watched.Receive() || len(watched.Msg().GetRun().GetTasks()) != 2 || watched.Msg().GetTaskCount() != 2 {
				t.Fatalf("the first message is %v, %v", watched.Msg(), watched.Err())
			}
			planned, err := client.PlanRun(t.Context(), connect.NewRequest(&v1.PlanRunRequest{
				Submit: &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: document("life-"+name, "build", "test")}},
			}))
			if err != nil || len(planned.Msg.GetTasks()) != 2 || planned.Msg.GetTasks()[0].GetPlacement() != "1 of 2 nodes" {
				t.Fatal(planned, err)
			}
			if _, err := client.PauseRun(t.Context(), connect.NewRequest(&v1.PauseRunRequest{Id: id})); err != nil {
				t.Fatal(err)
			}
			_, err = client.PauseRun(t.Context(), connect.NewRequest(&v1.PauseRunRequest{Id: id}))
			wantCode(t, "pause twice", err, connect.CodeAborted)
			if _, err := client.ResumeRun(t.Context(), connect.NewRequest(&v1.ResumeRunRequest{Id: id})); err != nil {
				t.Fatal(err)
			}
			set(t, id, "build", 1, &v1.Task{State: "completed", Node: "a", AssignedAt: timestamppb.Now(), Result: &v1.TaskResult{}})
			writeLog(t, f.config.Store, id, "build", 0, 1, "hello\n")
			cancelled, err := client.CancelRun(t.Context(), connect.NewRequest(&v1.CancelRunRequest{Id: id, Reason: "enough"}))
			if err != nil || cancelled.Msg.GetId() != id {
				t.Fatal(cancelled, err)
			}
			var state string
			for watched.Receive() {
				state = watched.Msg().GetRun().GetState()
			}
			if err := watched.Err(); err != nil || state != "cancelled" {
				t.Fatalf("the watched run ended %q, %v", state, err)
			}
			_, err = client.CancelRun(t.Context(), connect.NewRequest(&v1.CancelRunRequest{Id: id}))
			if connect.CodeOf(err) != connect.CodeAborted {
				t.Errorf("cancel a run that has ended: %v", err)
			}
			entries, err := client.StreamRunLogs(t.Context(), connect.NewRequest(&v1.StreamRunLogsRequest{Id: id, Follow: true}))
			if err != nil {
				t.Fatal(err)
			}
			if got := readLogs(t, entries); got["build"] != "hello\n" {
				t.Errorf("the log is %q", got)
			}
			again, err := client.RetryRun(t.Context(), connect.NewRequest(&v1.RetryRunRequest{Id: id}))
			if err != nil || again.Msg.GetGeneration() != 1 {
				t.Fatal(again, err)
			}
			end(t, id, "cancelled")
			eventually(t, "the run is listed", func() bool {
				items := answer(t, client.ListRuns, &v1.ListRunsRequest{Name: "life-" + name, State: "cancelled"}).GetItems()
				return len(items) == 1 && items[0].GetId() == id
			})
		})
	}
}

// TestEveryMethodReportsAnUnknownRun calls every method with a run that does not exist.
func TestEveryMethodReportsAnUnknownRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, id := range []string{"nothing-00000000", "No Such Run", "x' OR 'a' = 'a"} {
		_, err := f.client.GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: id}))
		wantCode(t, "get "+id, err, connect.CodeNotFound)
		if !missingRun(err) {
			t.Errorf("the error does not tell that it is the run that is missing: %v", err)
		}
		_, err = f.client.CancelRun(t.Context(), connect.NewRequest(&v1.CancelRunRequest{Id: id}))
		wantCode(t, "cancel "+id, err, connect.CodeNotFound)
		watched, err := f.client.WatchRun(t.Context(), connect.NewRequest(&v1.WatchRunRequest{Id: id}))
		if err != nil {
			t.Fatal(err)
		}
		watched.Receive()
		wantCode(t, "watch "+id, watched.Err(), connect.CodeNotFound)
		printed, err := f.client.StreamRunLogs(t.Context(), connect.NewRequest(&v1.StreamRunLogsRequest{Id: id}))
		if err != nil {
			t.Fatal(err)
		}
		printed.Receive()
		wantCode(t, "logs "+id, printed.Err(), connect.CodeNotFound)
	}
	_, err := f.client.GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{}))
	wantCode(t, "get without an id", err, connect.CodeInvalidArgument)
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

func wantCode(t *testing.T, what string, err error, code connect.Code) {
	t.Helper()
	if connect.CodeOf(err) != code || err == nil {
		t.Errorf("%s: got %v, want %v", what, err, code)
	}
}
