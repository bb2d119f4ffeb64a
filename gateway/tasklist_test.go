package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/gateway/tasklist"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// ofBatch makes a run part of a batch.
func ofBatch(batch string) func(*v1.SubmitRunRequest) {
	return func(req *v1.SubmitRunRequest) { req.Batch = batch }
}

// listTasks reads all pages of a list of tasks over REST. It returns "run/task state" for each task, and the number of pages.
func (f *fixture) listTasks(t *testing.T, query string) (found []string, pages int) {
	t.Helper()
	for token := ""; ; pages++ {
		got := f.rest(t, "GET", "/v1/tasks?"+query+"&pageToken="+url.QueryEscape(token), "")
		if got.status != http.StatusOK || pages > 100 {
			t.Fatalf("%s: %d %s", query, got.status, got.text)
		}
		for _, item := range got.value["items"].([]any) {
			task := item.(map[string]any)
			found = append(found, fmt.Sprintf("%s/%s %s", task["run"], task["task"], task["state"]))
		}
		if token, _ = got.value["nextPageToken"].(string); token == "" {
			return found, pages + 1
		}
	}
}

// TestListTasksFilters finds the tasks of all runs by their properties and nodes.
func TestListTasksFilters(t *testing.T) {
	t.Parallel()
	nodes := &fakeNodes{nodes: map[string]*v1.Node{}}
	f := startConfigured(t, "mem://", Config{Nodes: nodes})
	old := f.submitDocument(t, document("listed-old", "a", "b", "c"), ofBatch("listed"))
	eventually(t, "the older run is found", func() bool { found, _ := f.listTasks(t, "batch=listed"); return len(found) == 3 })
	young := f.submitDocument(t, document("listed-young", "each", "z"), ofBatch("listed"))
	idle := f.submitDocument(t, document("listed-idle", "r"), ofBatch("listed"))

	set(t, old, "a", 1, &v1.Task{State: "failed", Type: "shell", Node: "n1", Attempt: 2, Reason: "exit_code", Error: "exit code 3", Result: &v1.TaskResult{ExitCode: 3}})
	set(t, old, "b", 1, &v1.Task{State: "running", Type: "shell", Node: "n1"})
	set(t, young, "each", 0, &v1.Task{State: "running", Type: "container", Count: proto.Int32(3), Counts: map[string]int32{"completed": 1, "running": 1, "queued": 1}, Instances: []*v1.Instance{
		{Index: 0, State: "completed", Node: "n1", Result: &v1.TaskResult{}}, {Index: 1, State: "running", Node: "n2"}, {Index: 2, State: "queued"},
	}})
	set(t, idle, "r", 1, &v1.Task{State: "running", Type: "shell", Node: "n3"})
	nodes.nodes["n1"] = &v1.Node{Name: "n1", Running: 1, Snapshot: &v1.NodeSnapshot{Running: []*v1.RunningAttempt{{RunId: old, Task: "b", Claim: 1}}}}
	nodes.nodes["n2"] = &v1.Node{Name: "n2", Running: 1, Snapshot: &v1.NodeSnapshot{Running: []*v1.RunningAttempt{{RunId: young, Task: "each[1]", Claim: 1}}}}

	for query, want := range map[string][]string{
		"batch=listed": {
			idle + "/r running", young + "/each[0] completed", young + "/each[1] running", young + "/each[2] queued", young + "/z pending",
			old + "/a failed", old + "/b running", old + "/c pending",
		},
		// No node reports that it runs the task of the idle run.
		"batch=listed&state=running":           {young + "/each[1] running", old + "/b running"},
		"batch=listed&state=running&node=n1":   {old + "/b running"},
		"batch=listed&state=running&node=none": nil,
		"batch=listed&state=queued":            {young + "/each[2] queued"},
		"batch=listed&state=failed":            {old + "/a failed"},
		"workflow=listed-old&state=failed":     {old + "/a failed"},
		"batch=listed&type=container":          {young + "/each[0] completed", young + "/each[1] running", young + "/each[2] queued"},
		"batch=listed&type=vps":                nil,
		"run=" + old + "&state=pending":        {old + "/c pending"},
		"run=listed-old":                       {old + "/a failed", old + "/b running", old + "/c pending"},
		"run=" + young + "&node=n2":            {young + "/each[1] running"},
		"batch=other":                          nil,
	} {
		var got []string
		eventually(t, query, func() bool {
			got, _ = f.listTasks(t, query)
			return slices.Equal(got, want)
		})
		if paged, pages := f.listTasks(t, query+"&pageSize=2"); !slices.Equal(paged, want) || pages < (len(want)+1)/2 {
			t.Errorf("%s in pages of 2: %v", query, paged)
		}
	}

	res := answer(t, dialService(t, f, switchyardv1connect.NewTaskServiceClient, "").ListTasks, &v1.ListTasksRequest{Batch: "listed", State: "failed"})
	if len(res.GetItems()) != 1 || !proto.Equal(res.GetItems()[0], &v1.ListedTask{
		Run: old, Workflow: "listed-old", Task: "a", Type: "shell", State: "failed", Reason: "exit_code", Node: "n1", Attempt: 2, ExitCode: proto.Int32(3), Error: "exit code 3",
	}) {
		t.Errorf("the failed task is %v", res)
	}

	end(t, old, "failed")
	eventually(t, "the tasks of a run that has ended are listed", func() bool {
		open, _ := f.listTasks(t, "batch=listed&state=pending")
		all, _ := f.listTasks(t, "batch=listed&workflow=listed-old&state=failed")
		return slices.Equal(open, []string{young + "/z pending"}) && slices.Equal(all, []string{old + "/a failed"})
	})

	for what, path := range map[string]string{
		"an unknown state": "/v1/tasks?state=happy", "an unknown type": "/v1/tasks?type=shel", "a bad workflow": "/v1/tasks?workflow=a%20b", "a bad node": "/v1/tasks?node=a'b",
		"a large page": "/v1/tasks?pageSize=1001",
	} {
		if got := f.rest(t, "GET", path, ""); got.status != 400 || got.value["code"] != "invalid_argument" || got.message() == "" {
			t.Errorf("%s: %d %s", what, got.status, got.text)
		}
	}
	if got := f.rest(t, "GET", "/v1/tasks?run=no-such-run", ""); got.status != 404 || !strings.Contains(got.message(), "no-such-run") {
		t.Errorf("an unknown run: %d %s", got.status, got.text)
	}
}

// TestListTasksReadsFewRunsForAPage checks that the cost of a page is bounded, and that the next page continues after it.
func TestListTasksReadsFewRunsForAPage(t *testing.T) {
	t.Parallel()
	f := start(t)
	const runs = tasklist.MaxRuns + 5
	var last string
	for i := range runs {
		id := f.submitDocument(t, document("many-tasks", "a"), ofBatch("many-tasks"))
		if i == 0 {
			last = id
		}
	}
	set(t, last, "a", 1, &v1.Task{State: "failed", Type: "shell"})
	eventually(t, "all runs are found", func() bool { found, _ := f.listTasks(t, "batch=many-tasks&pageSize=1000"); return len(found) == runs })
	found, pages := f.listTasks(t, "batch=many-tasks&state=failed")
	if !slices.Equal(found, []string{last + "/a failed"}) || pages != 2 {
		t.Errorf("%v on %d pages", found, pages)
	}
}
