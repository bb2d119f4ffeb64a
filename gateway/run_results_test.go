package gateway

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/store/storekey"
	"switchyard/gateway/paging"
	v1 "switchyard/proto/switchyard/v1"
)

// TestGetRunPages reads a run page by page, with pages limited by number and by size.
func TestGetRunPages(t *testing.T) {
	t.Parallel()
	f := start(t)
	tasks := []string{"a", "b", "c", "d", "e", "f", "g"}
	id := f.submit(t, "pages", tasks...)
	for _, name := range tasks {
		key := storekey.Result(id, 0, name, 0)
		output, _ := structpb.NewStruct(map[string]any{"of": name})
		record := &v1.ExecuteResponse{State: "completed", Result: &v1.TaskResult{Stdout: strings.Repeat(name, 1<<20), Output: output}}
		if err := f.config.Store.PutMessage(t.Context(), key, record); err != nil {
			t.Fatal(err)
		}
		signal(t, id, setSignal, &v1.StatusResponse{
			Run:     &v1.Run{Tasks: map[string]*v1.Task{name: {State: "completed", Result: &v1.TaskResult{Stdout: "cut"}}}},
			Records: map[string]string{name: key},
		})
	}
	for size, pages := range map[int32]int{0: 4, 1: 7, 2: 4} {
		var got string
		token, n := "", 0
		for {
			res, err := f.client.GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: id, PageSize: size, PageToken: token}))
			if err != nil {
				t.Fatal(err)
			}
			n++
			for _, name := range tasks {
				if task := res.Msg.GetRun().GetTasks()[name]; task != nil {
					got += name
					if len(task.GetResult().GetStdout()) != 1<<20 || task.GetResult().GetOutput().AsMap()["of"] != name {
						t.Errorf("task %s is not whole", name)
					}
				}
			}
			if token = res.Msg.GetNextPageToken(); token == "" {
				break
			}
		}
		if got != "abcdefg" || n != pages {
			t.Errorf("pages of %d: %d pages with %s", size, n, got)
		}
	}
	res, err := f.client.GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: id, Brief: true}))
	if err != nil || res.Msg.GetNextPageToken() != "" || len(res.Msg.GetRun().GetTasks()) != len(tasks) {
		t.Fatalf("briefly: %v, error %v", res, err)
	}
	some, err := f.client.GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: id, Tasks: []string{"e", "b", "none", "e"}}))
	if err != nil || some.Msg.GetNextPageToken() != "" || len(some.Msg.GetRun().GetTasks()) != 2 ||
		len(some.Msg.GetRun().GetTasks()["b"].GetResult().GetStdout()) != 1<<20 || some.Msg.GetRun().GetTasks()["e"] == nil {
		t.Errorf("some tasks: %v, error %v", len(some.Msg.GetRun().GetTasks()), err)
	}
	for name, task := range res.Msg.GetRun().GetTasks() {
		if task.GetState() != "completed" || task.GetResult().GetStdout() != "" || task.GetResult().GetOutput() != nil {
			t.Errorf("task %s is not brief: %v", name, task)
		}
	}
}

func TestGetRunRejectsForeignPageTokens(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "tokens")
	tasks, runs := pagesOf(t, &v1.GetRunRequest{}), pagesOf(t, &v1.ListRunsRequest{})
	for _, token := range []string{"?", "aGVsbG8", tasks.EncodeTask("other-00000000", "build"), runs.EncodeRun(paging.Position{})} {
		_, err := f.client.GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: id, PageToken: token}))
		wantCode(t, "token "+token, err, connect.CodeInvalidArgument)
	}
	for _, token := range []string{"?", "aGVsbG8", tasks.EncodeTask(id, "build"), runs.Token("noon", "x")} {
		_, err := f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{PageToken: token}))
		wantCode(t, "token "+token, err, connect.CodeInvalidArgument)
	}
}

// TestMissingRecordFallsBackToTheWorkflow checks that a result without its record shows the workflow's part of it.
func TestMissingRecordFallsBackToTheWorkflow(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "missing")
	signal(t, id, setSignal, &v1.StatusResponse{
		Run:     &v1.Run{Tasks: map[string]*v1.Task{"build": {State: "completed", Result: &v1.TaskResult{Stdout: "cut"}}}},
		Records: map[string]string{"build": storekey.Result(id, 0, "build", 0)},
	})
	if got := f.get(t, id).GetTasks()["build"].GetResult().GetStdout(); got != "cut" {
		t.Errorf("stdout is %q", got)
	}
}
