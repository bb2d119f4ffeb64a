package gateway

import (
	"maps"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/visibility"
)

// TestLogsIncludeChildRuns checks that the logs of a run include those of its child runs, started by tasks or instances, at any
// depth. A stream that resumes another one sends only what that one did not.
func TestLogsIncludeChildRuns(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "parent", "deploy", "each", "own")
	child := func(parent string) string {
		return startedWith(t, visibility.StartedBy(parent, "child", time.Now()))
	}
	first, second := child(id), child(id)
	grandchild := child(first)
	done := &v1.Task{State: "completed", Type: "shell", Result: &v1.TaskResult{}}
	set(t, id, "own", 1, done)
	writeLog(t, f.config.Store, id, "own", 0, 1, "own\n")
	set(t, id, "deploy", 1, &v1.Task{State: "completed", Type: "run", ChildRun: first})
	signal(t, id, setSignal, &v1.StatusResponse{Run: &v1.Run{Tasks: map[string]*v1.Task{"each": {
		State: "completed", Type: "run", Count: proto.Int32(2), Counts: map[string]int32{"completed": 2}, Instances: []*v1.Instance{
			{Index: 0, State: "completed", ChildRun: second}, {Index: 1, State: "completed", ChildRun: "child-00000000"},
		},
	}}}})
	set(t, first, "build", 1, done)
	writeLog(t, f.config.Store, first, "build", 0, 1, "built\n")
	set(t, first, "sub", 1, &v1.Task{State: "completed", Type: "run", ChildRun: grandchild})
	set(t, grandchild, "deep", 1, done)
	writeLog(t, f.config.Store, grandchild, "deep", 0, 1, "deep\n")
	set(t, second, "build", 1, done)
	writeLog(t, f.config.Store, second, "build", 0, 1, "second\n")

	all := map[string]string{
		"own": "own\n", "deploy/build": "built\n", "deploy/sub/deep": "deep\n", "each[0]/build": "second\n",
		"each[1]": "run child-00000000 has been deleted\n",
	}
	for task, want := range map[string]map[string]string{
		"":        all,
		"deploy":  {"deploy/build": "built\n", "deploy/sub/deep": "deep\n"},
		"each[0]": {"each[0]/build": "second\n"},
	} {
		if got := readLogs(t, f.logs(t, &v1.StreamRunLogsRequest{Id: id, Task: task, Children: true})); !maps.Equal(got, want) {
			t.Errorf("of %q: got %q, want %q", task, got, want)
		}
	}
	if got := readLogs(t, f.logs(t, &v1.StreamRunLogsRequest{Id: id})); !maps.Equal(got, map[string]string{"own": "own\n"}) {
		t.Errorf("without children: %q", got)
	}

	var resume []*v1.LogPosition
	stream := f.logs(t, &v1.StreamRunLogsRequest{Id: id, Children: true})
	for stream.Receive() {
		if at := stream.Msg().GetPosition(); at != nil && at.GetTask() != "each[0]/build" {
			resume = append(resume, at)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	rest := map[string]string{"each[0]/build": all["each[0]/build"], "each[1]": all["each[1]"]}
	if got := readLogs(t, f.logs(t, &v1.StreamRunLogsRequest{Id: id, Children: true, Resume: resume})); !maps.Equal(got, rest) {
		t.Errorf("resumed after %v: got %q, want %q", resume, got, rest)
	}
	refused := f.logs(t, &v1.StreamRunLogsRequest{Id: id, Children: true, Follow: true})
	refused.Receive()
	wantCode(t, "children and follow", refused.Err(), connect.CodeInvalidArgument)
}
