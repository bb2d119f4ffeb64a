package runlogs_test

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/store/storetest"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runlogs"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// viewOf returns a view of a run, as if its workflow had reported the tasks.
func viewOf(generation int32, tasks map[string]*v1.Task) *runview.View {
	v := runview.NewView("ci-0k")
	v.Update([]*historyv1.StatusResponse{{
		Run: &v1.Run{Id: "ci-0k", State: v1.RunRunning, Generation: generation, Tasks: tasks}, TaskCount: int32(len(tasks)), Revision: 1,
	}}, nil)
	return v
}

func TestRequestForAbsentTaskOrAttemptIsRefused(t *testing.T) {
	t.Parallel()
	v := viewOf(2, map[string]*v1.Task{
		"build": {State: "running", Attempt: 1}, "each": {State: "running", Count: proto.Int32(3)}, "later": {State: "pending"},
	})
	for _, test := range []struct {
		req     *v1.StreamRunLogsRequest
		problem string
	}{
		{&v1.StreamRunLogsRequest{}, ""},
		{&v1.StreamRunLogsRequest{Task: "build"}, ""},
		{&v1.StreamRunLogsRequest{Task: "build", Attempt: proto.Int32(1)}, ""},
		{&v1.StreamRunLogsRequest{Task: "build", Attempt: proto.Int32(2)}, "no attempt 2 in its newest generation; its newest is 1"},
		{&v1.StreamRunLogsRequest{Task: "build", Attempt: proto.Int32(2), Follow: true}, ""}, // it may come
		{&v1.StreamRunLogsRequest{Task: "build", Attempt: proto.Int32(9), Generation: proto.Int32(0)}, ""},
		{&v1.StreamRunLogsRequest{Task: "buidl"}, "buidl"},
		{&v1.StreamRunLogsRequest{Task: "each"}, ""},
		{&v1.StreamRunLogsRequest{Task: "each[2]"}, ""},
		{&v1.StreamRunLogsRequest{Task: "each[3]"}, "no instance 3; it has 3"},
		{&v1.StreamRunLogsRequest{Task: "each[3]", Follow: true}, "no instance 3; it has 3"},
		{&v1.StreamRunLogsRequest{Task: "each[3]", Generation: proto.Int32(1)}, ""}, // it may have had more then
		{&v1.StreamRunLogsRequest{Task: "later[0]"}, "no instance 0; it has 0"},
		{&v1.StreamRunLogsRequest{Task: "later[0]", Follow: true}, ""},
		{&v1.StreamRunLogsRequest{Generation: proto.Int32(2)}, ""},
		{&v1.StreamRunLogsRequest{Generation: proto.Int32(3)}, "no generation 3; its newest is 2"},
	} {
		err := runlogs.New("ci-0k", storetest.Open(t, "mem://"), test.req, nil).Validate(v)
		if (err == nil) != (test.problem == "") || err != nil && (rpcerror.CodeOf(err) != connect.CodeNotFound || !strings.Contains(err.Error(), test.problem)) {
			t.Errorf("%v: %v, want %q", test.req, err, test.problem)
		}
	}
}
