package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// putMessage stores a message in the store of the gateway.
func (f *fixture) putMessage(t *testing.T, key string, m proto.Message) {
	t.Helper()
	if err := f.config.Store.PutMessage(t.Context(), key, m); err != nil {
		t.Fatal(err)
	}
}

// TestGetRunFollowsChanges reads a changing run repeatedly and checks that it sees each change.
func TestGetRunFollowsChanges(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "recalled", "a", "b", "c", "d", "e")
	check := func(run, state string) {
		t.Helper()
		for range 2 {
			got := f.get(t, id)
			if tasks := got.GetTasks(); len(tasks) != 5 || got.GetState() != run || tasks["b"].GetState() != state {
				t.Fatalf("got %v, want b %s", got, state)
			}
		}
		if d := answer(t, f.client.GetRunDefinition, &v1.GetRunDefinitionRequest{Id: id}).GetDefinition(); d.GetName() != "recalled" || len(d.GetTasks()) != 5 {
			t.Errorf("the definition is %v", d)
		}
	}
	for i, state := range []string{"queued", "assigned", "failed", "queued", "completed"} {
		set(t, id, "b", int32(i), &v1.Task{State: state})
		check("running", state)
	}
	end(t, id, "completed")
	check("completed", "completed")
	f.retryRun(t, id, "b")
	check("running", "pending")
	end(t, id, "completed")
}

// TestGetRunShowsEachKindOfEnd reads runs that ended in each possible way.
func TestGetRunShowsEachKindOfEnd(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, test := range []struct{ end, state, reason, error string }{
		{"completed", "completed", "", ""}, {"failed", "failed", "task_failed", "build failed"}, {"cancelled", "cancelled", "", "build failed"},
		{"bare", "failed", "system", "it broke"}, {"terminated", "failed", "terminated", "somebody did"},
	} {
		t.Run(test.end, func(t *testing.T) {
			id := f.submit(t, "ends", "build", "test", "each")
			each := &v1.Task{
				State: "running", Type: "shell", Count: proto.Int32(2), Counts: map[string]int32{"completed": 1, "assigned": 1},
				Instances: []*v1.Instance{{Index: 0, State: "completed"}, {Index: 1, State: "assigned"}},
			}
			signal(t, id, setSignal, &historyv1.StatusResponse{Run: &v1.Run{
				Error: map[bool]string{true: "build failed"}[test.end == "failed" || test.end == "cancelled"],
				Tasks: map[string]*v1.Task{"build": {State: "failed", Result: &v1.TaskResult{ExitCode: 1}}, "each": each},
			}})
			if test.end == "terminated" {
				eventually(t, "build has failed", func() bool { return f.get(t, id).GetTasks()["build"].GetState() == "failed" })
				endByForce(t, id, "somebody did")
			} else {
				end(t, id, test.end)
			}
			run := f.get(t, id)
			if run.GetState() != test.state || run.GetReason() != test.reason || !strings.Contains(run.GetError(), test.error) || run.GetCompletedAt() == nil || run.GetId() != id || run.GetName() != "ends" {
				t.Errorf("the run is %v", run)
			}
			if build := run.GetTasks()["build"]; build.GetState() != "failed" || build.GetResult().GetExitCode() != 1 {
				t.Errorf("build is %v", build)
			}
			if open := run.GetTasks()["test"]; open.GetState() != "cancelled" || open.GetReason() != test.reason {
				t.Errorf("test is %v", open)
			}
			got := run.GetTasks()["each"]
			if counts := got.GetCounts(); got.GetState() != "cancelled" || counts["cancelled"] != 1 || counts["completed"] != 1 || len(counts) != 2 ||
				got.GetInstances()[0].GetState() != "completed" || got.GetInstances()[1].GetState() != "cancelled" {
				t.Errorf("each is %v", got)
			}
		})
	}
}

// TestLargeFinalStatusIsReadFromTheStore reads a run whose status is too large for Temporal.
func TestLargeFinalStatusIsReadFromTheStore(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "large")
	f.putMessage(t, storekey.Status(id, 0), &historyv1.StatusResponse{
		Run: &v1.Run{Id: id, Name: "large", State: "completed", Tasks: map[string]*v1.Task{
			"build": {State: "completed", Result: &v1.TaskResult{}}, "test": {State: "skipped"},
		}},
		TaskCount: 2,
	})
	end(t, id, "large")
	if run := f.get(t, id); run.GetState() != "completed" || run.GetTasks()["test"].GetState() != "skipped" {
		t.Errorf("the run is %v", run)
	}
	// Without the stored status, the workflow still knows the states of the tasks that it has not dropped.
	lost := f.submit(t, "lost")
	end(t, lost, "large")
	if run := f.get(t, lost); run.GetState() != "completed" {
		t.Errorf("the run is %v", run)
	}
}

// TestRunTerminatedBeforeItsFirstTaskIsShown reads a run that was terminated before any worker picked it up.
func TestRunTerminatedBeforeItsFirstTaskIsShown(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := names.NewRunID("unheard")
	def := &v1.Definition{Name: "unheard", Tasks: map[string]*v1.TaskDefinition{"a": {Type: "shell"}, "b": {Type: "shell", DependsOn: []string{"a"}}}}
	execute(t, client.StartWorkflowOptions{ID: id, TaskQueue: "nobody"}, names.RunWorkflow, &historyv1.RunInput{Definition: def})
	endByForce(t, id, "gone")
	run := f.get(t, id)
	if b := run.GetTasks()["b"]; run.GetState() != "failed" || b.GetState() != "cancelled" || b.GetReason() != "terminated" || b.GetType() != "shell" || !slices.Equal(b.GetDependsOn(), []string{"a"}) {
		t.Errorf("the run is %v", run)
	}
}

// TestGetRunPages reads a run page by page, with pages limited by number and by size.
func TestGetRunPages(t *testing.T) {
	t.Parallel()
	f := start(t)
	tasks := []string{"a", "b", "c", "d", "e", "f", "g"}
	id := f.submit(t, "pages", append(tasks, "unrecorded")...)
	shown := &historyv1.StatusResponse{Run: &v1.Run{Tasks: map[string]*v1.Task{}}, Records: map[string]string{}}
	for _, name := range append(tasks, "unrecorded") {
		shown.Records[name] = storekey.Result(id, 0, name, 0)
		shown.Run.Tasks[name] = &v1.Task{State: "completed", Result: &v1.TaskResult{Stdout: "cut"}}
	}
	for _, name := range tasks {
		output, _ := structpb.NewStruct(map[string]any{"of": name})
		f.putMessage(t, shown.Records[name], &historyv1.ExecuteResponse{State: "completed", Result: &v1.TaskResult{Stdout: strings.Repeat(name, 1<<20), Output: output}})
	}
	signal(t, id, setSignal, shown)
	for size, pages := range map[int32]int{0: 4, 1: 8, 2: 4} {
		var got string
		n := 0
		for req := (&v1.GetRunRequest{Id: id, PageSize: size}); n == 0 || req.GetPageToken() != ""; n++ {
			res := answer(t, f.client.GetRun, req)
			for _, name := range tasks {
				if task := res.GetRun().GetTasks()[name]; task != nil {
					got += name
					if len(task.GetResult().GetStdout()) != 1<<20 || task.GetResult().GetOutput().AsMap()["of"] != name {
						t.Errorf("task %s is not whole", name)
					}
				}
			}
			req.PageToken = res.GetNextPageToken()
		}
		if got != "abcdefg" || n != pages {
			t.Errorf("pages of %d: %d pages with %s", size, n, got)
		}
	}
	brief := answer(t, f.client.GetRun, &v1.GetRunRequest{Id: id, Brief: true})
	if brief.GetNextPageToken() != "" || len(brief.GetRun().GetTasks()) != len(tasks)+1 {
		t.Errorf("briefly: %v", brief)
	}
	for name, task := range brief.GetRun().GetTasks() {
		if task.GetState() != "completed" || task.GetResult().GetStdout() != "" || task.GetResult().GetOutput() != nil {
			t.Errorf("task %s is not brief: %v", name, task)
		}
	}
	some := answer(t, f.client.GetRun, &v1.GetRunRequest{Id: id, Tasks: []string{"unrecorded", "b", "none", "b"}})
	if got := some.GetRun().GetTasks(); some.GetNextPageToken() != "" || len(got) != 2 || len(got["b"].GetResult().GetStdout()) != 1<<20 {
		t.Errorf("some tasks are %d", len(got))
	} else if text := got["unrecorded"].GetResult().GetStdout(); text != "cut" {
		t.Errorf("a result whose record is missing shows %q, not the part that the workflow knows", text)
	}
}

// TestRunTasksArePaged lists the tasks of a run, open and ended, with a filter and without one.
func TestRunTasksArePaged(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "listed-tasks")
	set(t, id, "build", 1, assigned(0))
	list := func(req *v1.ListRunTasksRequest) (found []string, res *v1.ListRunTasksResponse) {
		t.Helper()
		req.Id = id
		res = answer(t, f.client.ListRunTasks, req)
		for _, task := range res.GetItems() {
			found = append(found, task.GetName()+" "+task.GetState())
		}
		return found, res
	}
	first, res := list(&v1.ListRunTasksRequest{PageSize: 1})
	second, last := list(&v1.ListRunTasksRequest{PageSize: 1, PageToken: res.GetNextPageToken()})
	if !slices.Equal(slices.Concat(first, second), []string{"build assigned", "test pending"}) || res.GetTotal() != 2 || last.GetNextPageToken() != "" {
		t.Errorf("the pages are %v, %v", res, last)
	}
	if task := answer(t, f.client.GetRunTask, &v1.GetRunTaskRequest{Id: id, Task: "build"}).GetTask(); task.GetNode() != "n" {
		t.Errorf("the task is %v", task)
	}
	refused(t, "an instance of what has none", f.client.GetRunTask, &v1.GetRunTaskRequest{Id: id, Task: "build[3]"}, connect.CodeNotFound, "no instance 3")
	end(t, id, "cancelled")
	for i, state := range []string{"", v1.TaskCompleted, ""} { // the filter leaves the cached tasks alone
		if got, _ := list(&v1.ListRunTasksRequest{State: state}); len(got) != []int{2, 0, 2}[i] {
			t.Errorf("state %q: %v", state, got)
		}
	}
}

// fanOut shows a fanned-out task of a scripted run with instances.
func fanOut(t *testing.T, run, task, state string, count int32, counts map[string]int32, instances ...*v1.Instance) {
	t.Helper()
	claims := map[string]int32{task: 1}
	for _, i := range instances {
		claims[names.InstanceName(task, int(i.GetIndex()))] = 3
	}
	signal(t, run, setSignal, &historyv1.StatusResponse{
		Run:    &v1.Run{Tasks: map[string]*v1.Task{task: {State: state, Type: "shell", Count: proto.Int32(count), Counts: counts, Instances: instances}}},
		Claims: claims,
	})
}

// TestListInstancesReadsRunAndChildren reads a task with instances from three sources: two in the status of the run, two more
// from its query, and three from a child.
func TestListInstancesReadsRunAndChildren(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "fanned", "each", "other")
	record := storekey.Result(id, 0, "each[0]", 0)
	f.putMessage(t, record, &historyv1.ExecuteResponse{Result: &v1.TaskResult{Stdout: "all of it"}})
	signal(t, id, setSignal, &historyv1.StatusResponse{Records: map[string]string{"each[0]": record}})
	fanOut(t, id, "each", "running", 7, map[string]int32{"completed": 1, "dead_letter": 1, "assigned": 5},
		&v1.Instance{Index: 0, State: "completed", Node: "a", Result: &v1.TaskResult{Stdout: "of it"}},
		&v1.Instance{Index: 1, State: "dead_letter", Node: "b", Error: "exit code 2", Attempts: []*v1.Attempt{{Node: "b"}}})
	startPart(t, id, "each", 7)

	run := f.get(t, id)
	task := run.GetTasks()["each"]
	if i := task.GetInstances()[0]; task.GetCount() != 7 || task.GetCounts()["assigned"] != 5 || len(task.GetInstances()) != 2 || i.GetResult().GetStdout() != "all of it" || i.GetNode() != "a" {
		t.Errorf("each is %v", task)
	}
	if n, of := run.GetTaskCounts(), run.GetInstanceCounts(); n["running"] != 1 || n["pending"] != 1 || len(n) != 2 || of["assigned"] != 5 || of["completed"] != 1 || of["dead_letter"] != 1 || len(of) != 3 {
		t.Errorf("there are tasks %v and instances %v", n, of)
	}
	whole := []string{"0 completed a", "1 dead_letter b", "2 assigned n2", "3 assigned n3", "4 assigned n4", "5 assigned n5", "6 assigned n6"}
	for _, test := range []struct {
		req  *v1.ListInstancesRequest
		want []string
	}{
		{&v1.ListInstancesRequest{}, whole}, {&v1.ListInstancesRequest{PageSize: 3}, whole},
		{&v1.ListInstancesRequest{State: "assigned"}, whole[2:]}, {&v1.ListInstancesRequest{State: "assigned", PageSize: 3}, whole[2:]},
		{&v1.ListInstancesRequest{State: "dead_letter"}, whole[1:2]}, {&v1.ListInstancesRequest{State: "failed"}, nil},
		{&v1.ListInstancesRequest{First: 5}, whole[5:]}, {&v1.ListInstancesRequest{Task: "other"}, nil},
	} {
		req := proto.CloneOf(test.req)
		if req.Id = id; req.Task == "" {
			req.Task = "each"
		}
		var got []string
		for more := true; more; more = req.PageToken != "" {
			page := answer(t, f.client.ListInstances, req)
			if n := len(page.GetItems()); req.GetPageSize() > 0 && n > int(req.GetPageSize()) {
				t.Errorf("a page has %d", n)
			}
			for _, i := range page.GetItems() {
				got = append(got, fmt.Sprintf("%d %s %s", i.GetIndex(), i.GetState(), i.GetNode()))
			}
			req.PageToken = page.GetNextPageToken()
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v: %q, want %q", test.req, got, test.want)
		}
	}
	refused(t, "a state that is none", f.client.ListInstances, &v1.ListInstancesRequest{Id: id, Task: "each", State: "broken"}, connect.CodeInvalidArgument)
	refused(t, "an unknown task", f.client.ListInstances, &v1.ListInstancesRequest{Id: id, Task: "eahc"}, connect.CodeNotFound)

	if got := answer(t, f.client.ExplainTask, &v1.ExplainTaskRequest{Id: id, Task: "each[5]"}); got.GetState() != "assigned" || got.GetChosen() != "n5" || got.GetReason() != "each[5]#7 of type shell, 0 labels" {
		t.Errorf("each[5] is explained by %v", got)
	}
	for _, task := range []string{"each[7]", "other[0]"} {
		refused(t, "explain "+task, f.client.ExplainTask, &v1.ExplainTaskRequest{Id: id, Task: task}, connect.CodeNotFound)
	}
	// Commands for an instance go to the child that carries it.
	do(t, f.client.HoldTask, &v1.HoldTaskRequest{Id: id, Task: "each[5]"})
	for _, task := range []string{"each[1]", "each[7]"} {
		refused(t, "hold "+task, f.client.HoldTask, &v1.HoldTaskRequest{Id: id, Task: task}, connect.CodeNotFound)
	}
	dead := []string{id + " each[1]"}
	if got, res := f.letters(t, &v1.ListDeadLettersRequest{Run: id}); !slices.Equal(got, dead) || len(res.GetItems()[0].GetAttempts()) != 1 || res.GetItems()[0].GetError() != "exit code 2" {
		t.Errorf("the dead letters are %v", res)
	}
	if purged := do(t, f.client.PurgeDeadLetter, &v1.PurgeDeadLetterRequest{Run: id, Task: "each"}).GetTasks(); !slices.Equal(purged, []string{"each[1]"}) {
		t.Errorf("purged %v", purged)
	}
	refused(t, "purge twice", f.client.PurgeDeadLetter, &v1.PurgeDeadLetterRequest{Run: id, Task: "each[1]"}, connect.CodeAborted)
	if got, _ := f.letters(t, &v1.ListDeadLettersRequest{Run: id}); len(got) != 0 {
		t.Errorf("the dead letters are %v", got)
	}
}

// TestInstancesOfAnEndedChildAreReadFromTheStore reads the instances of an ended child from the store, without a workflow that
// answers.
func TestInstancesOfAnEndedChildAreReadFromTheStore(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "stored", "each")
	fanOut(t, id, "each", "running", 7, map[string]int32{"completed": 7})
	child := names.FanOut{Run: id, Task: "each", From: childFrom}.ID()
	task := &v1.Task{State: "completed"}
	for i := range int32(7 - childFrom) {
		task.Instances = append(task.Instances, &v1.Instance{Index: childFrom + i, State: "completed", Node: fmt.Sprint("kept", i), Result: &v1.TaskResult{Stdout: "x"}})
	}
	record := storekey.Result(id, 0, "each[5]", 0)
	f.putMessage(t, record, &historyv1.ExecuteResponse{Result: &v1.TaskResult{Stdout: "all of it"}})
	f.putMessage(t, storekey.Status(child, 0), &historyv1.StatusResponse{Run: &v1.Run{Id: child, Tasks: map[string]*v1.Task{"each": task}}, Records: map[string]string{"each[5]": record}})
	var nodes []string
	for _, i := range f.get(t, id).GetTasks()["each"].GetInstances() {
		nodes = append(nodes, i.GetNode())
	}
	if want := []string{"n0", "n1", "n2", "n3", "kept0", "kept1", "kept2"}; !slices.Equal(nodes, want) {
		t.Errorf("the instances are on %q, want %q", nodes, want)
	}
	for size, want := range map[int32]string{0: "4 kept0 x|5 kept1 all of it|6 kept2 x", 2: "4 kept0 x|5 kept1 all of it", 1: "4 kept0 x"} {
		page := answer(t, f.client.ListInstances, &v1.ListInstancesRequest{Id: id, Task: "each", PageSize: size, First: childFrom})
		var got []string
		for _, i := range page.GetItems() {
			got = append(got, fmt.Sprintf("%d %s %s", i.GetIndex(), i.GetNode(), i.GetResult().GetStdout()))
		}
		if all := strings.Join(got, "|"); all != want || (page.GetNextPageToken() == "") != (size == 0) {
			t.Errorf("a page of %d: %s, more: %v", size, all, page.GetNextPageToken() != "")
		}
	}
}

// TestInstancesShowTheirItems checks that instances of open and ended runs show their items, whether the run
// or the store holds them.
func TestInstancesShowTheirItems(t *testing.T) {
	t.Parallel()
	f := start(t)
	list, err := structpb.NewList([]any{"a.png", map[string]any{"os": "linux", "go": 1.25}})
	if err != nil {
		t.Fatal(err)
	}
	key := storekey.List("items", "some")
	f.putMessage(t, key, &historyv1.ItemList{Items: list.GetValues()})
	for name, items := range map[string]*historyv1.Items{"inline": {List: list}, "stored": {Key: key}} {
		id := f.submit(t, "items-"+name, "each")
		signal(t, id, setSignal, &historyv1.StatusResponse{Items: map[string]*historyv1.Items{"each": items}})
		fanOut(t, id, "each", "completed", 2, map[string]int32{"completed": 2}, &v1.Instance{Index: 0, State: "completed"}, &v1.Instance{Index: 1, State: "completed"})
		for _, hasEnded := range []bool{false, true} {
			if hasEnded {
				f.putMessage(t, storekey.Status(id, 0), &historyv1.StatusResponse{Run: &v1.Run{Id: id, State: "completed"}, Items: map[string]*historyv1.Items{"each": items}})
				end(t, id, "completed")
			}
			var got []string
			for _, i := range answer(t, f.client.ListInstances, &v1.ListInstancesRequest{Id: id, Task: "each"}).GetItems() {
				got = append(got, i.GetItem())
			}
			if !slices.Equal(got, []string{"a.png", `{"go":1.25,"os":"linux"}`}) {
				t.Errorf("%s, ended %t: %q", name, hasEnded, got)
			}
		}
	}
}
