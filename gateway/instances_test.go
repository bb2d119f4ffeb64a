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
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/logs"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// fanOut shows a fanned-out task of a scripted run with instances.
func fanOut(t *testing.T, run, task, state string, count int32, counts map[string]int32, instances ...*v1.Instance) {
	t.Helper()
	claims := map[string]int32{task: 1}
	for _, i := range instances {
		claims[names.InstanceName(task, int(i.GetIndex()))] = 3
	}
	signal(t, run, setSignal, &v1.StatusResponse{
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
	output, _ := structpb.NewStruct(map[string]any{"n": 1})
	record := storekey.Result(id, 0, "each[0]", 0)
	if err := f.config.Store.PutMessage(t.Context(), record, &v1.ExecuteResponse{Result: &v1.TaskResult{Stdout: "all of it", Output: output}}); err != nil {
		t.Fatal(err)
	}
	signal(t, id, setSignal, &v1.StatusResponse{Records: map[string]string{"each[0]": record}})
	fanOut(t, id, "each", "running", 7, map[string]int32{"completed": 1, "dead_letter": 1, "assigned": 5},
		&v1.Instance{Index: 0, State: "completed", Node: "a", Result: &v1.TaskResult{Stdout: "of it"}},
		&v1.Instance{Index: 1, State: "dead_letter", Node: "b", Error: "exit code 2", Attempts: []*v1.Attempt{{Node: "b"}}, CompletedAt: timestamppb.Now()})
	child := names.FanOut{Run: id, Task: "each", From: childFrom}.ID()
	_, err := temporalClient.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: child, TaskQueue: names.ControlQueue},
		names.FanOutWorkflow, &v1.RunInput{Partition: &v1.Partition{From: childFrom, To: 7}})
	if err != nil {
		t.Fatal(err)
	}
	defer signal(t, child, endSignal, nil)

	task := f.get(t, id).GetTasks()["each"]
	if task.GetCount() != 7 || task.GetCounts()["assigned"] != 5 || len(task.GetInstances()) != 2 {
		t.Errorf("each is %v", task)
	}
	if i := task.GetInstances()[0]; i.GetResult().GetStdout() != "all of it" || i.GetResult().GetOutput().AsMap()["n"] != 1.0 || i.GetNode() != "a" {
		t.Errorf("the first instance is %v", i)
	}
	for state, want := range map[string][]string{
		"":            {"0 completed a", "1 dead_letter b", "2 assigned n2", "3 assigned n3", "4 assigned n4", "5 assigned n5", "6 assigned n6"},
		"assigned":    {"2 assigned n2", "3 assigned n3", "4 assigned n4", "5 assigned n5", "6 assigned n6"},
		"dead_letter": {"1 dead_letter b"},
		"failed":      nil,
	} {
		for _, size := range []int32{0, 3} {
			var got []string
			token := ""
			for {
				page, err := f.client.ListInstances(t.Context(), connect.NewRequest(&v1.ListInstancesRequest{
					Id: id, Task: "each", PageSize: size, PageToken: token, State: state,
				}))
				if err != nil {
					t.Fatal(err)
				}
				if n := len(page.Msg.GetItems()); size > 0 && n > int(size) {
					t.Errorf("a page has %d", n)
				}
				for _, i := range page.Msg.GetItems() {
					got = append(got, fmt.Sprintf("%d %s %s", i.GetIndex(), i.GetState(), i.GetNode()))
				}
				if token = page.Msg.GetNextPageToken(); token == "" {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q in pages of %d: %q", state, size, got)
			}
		}
	}
	run := f.get(t, id)
	if n := run.GetTaskCounts(); n["running"] != 1 || n["pending"] != 1 || len(n) != 2 {
		t.Errorf("the tasks are %v", n)
	}
	if n := run.GetInstanceCounts(); n["assigned"] != 5 || n["completed"] != 1 || n["dead_letter"] != 1 || len(n) != 3 {
		t.Errorf("the instances are %v", n)
	}
	_, err = f.client.ListInstances(t.Context(), connect.NewRequest(&v1.ListInstancesRequest{Id: id, Task: "each", State: "broken"}))
	wantCode(t, "a state that is none", err, connect.CodeInvalidArgument)
	if page, err := f.client.ListInstances(t.Context(), connect.NewRequest(&v1.ListInstancesRequest{Id: id, Task: "each", PageSize: 1, First: 5})); err != nil || page.Msg.GetItems()[0].GetIndex() != 5 {
		t.Errorf("from the sixth on: %v, %v", page, err)
	}
	if page, err := f.client.ListInstances(t.Context(), connect.NewRequest(&v1.ListInstancesRequest{Id: id, Task: "other"})); err != nil || len(page.Msg.GetItems()) != 0 {
		t.Errorf("of a task that has not fanned out: %v, %v", page, err)
	}
	_, err = f.client.ListInstances(t.Context(), connect.NewRequest(&v1.ListInstancesRequest{Id: id, Task: "each", PageToken: pagesOf(t, &v1.ListInstancesRequest{Task: "other"}).EncodeInstance(id, "other", 1)}))
	wantCode(t, "a token of another task", err, connect.CodeInvalidArgument)
	_, err = f.client.ListInstances(t.Context(), connect.NewRequest(&v1.ListInstancesRequest{Id: id, Task: "eahc"}))
	wantCode(t, "an unknown task", err, connect.CodeNotFound)

	explain := func(task string) (*v1.ExplainTaskResponse, error) {
		res, err := f.client.ExplainTask(t.Context(), connect.NewRequest(&v1.ExplainTaskRequest{Id: id, Task: task}))
		if err != nil {
			return nil, err
		}
		return res.Msg, nil
	}
	if got, err := explain("each[5]"); err != nil || got.GetState() != "assigned" || got.GetChosen() != "n5" || got.GetReason() != "each[5]#7 of type shell, 0 labels" {
		t.Errorf("each[5] is explained by %v, %v", got, err)
	}
	_, err = explain("each[7]")
	wantCode(t, "an instance too many", err, connect.CodeNotFound)
	_, err = explain("other[0]")
	wantCode(t, "an instance of what has none", err, connect.CodeNotFound)

	if got, res := f.letters(t, &v1.ListDeadLettersRequest{Run: id}); !slices.Equal(got, []string{id + " each[1]"}) || len(res.GetItems()[0].GetAttempts()) != 1 || res.GetItems()[0].GetError() != "exit code 2" {
		t.Errorf("the dead letters are %v", res)
	}
	for _, name := range []string{"each", "each[1]"} {
		if about, err := f.client.PurgeDeadLetter(t.Context(), connect.NewRequest(&v1.PurgeDeadLetterRequest{Run: id, Task: name})); name == "each" && (err != nil || !slices.Equal(about.Msg.GetTasks(), []string{"each[1]"})) {
			t.Errorf("purged %v, %v", about, err)
		} else if name != "each" {
			wantCode(t, "purge twice", err, connect.CodeAborted)
		}
	}
	if got, _ := f.letters(t, &v1.ListDeadLettersRequest{Run: id}); len(got) != 0 {
		t.Errorf("the dead letters are %v", got)
	}
	signal(t, id, eventsSignal, &v1.EventsResponse{Events: []*v1.Event{
		event(0, "each", "expanded"), event(1, "each[0]", "completed"), event(2, "each[1]", "failed"), event(3, "other", "queued"),
	}})
	for task, want := range map[string]int{"each": 3, "each[1]": 1, "": 4} {
		res, err := f.client.ListRunEvents(t.Context(), connect.NewRequest(&v1.ListRunEventsRequest{Id: id, Task: task}))
		if err != nil || len(res.Msg.GetItems()) != want {
			t.Errorf("events of %q: %v, %v", task, res, err)
		}
	}
}

// TestGetRunQueriesChildrenForInstances shows the instances of a task that are not in the status of the run.
func TestGetRunQueriesChildrenForInstances(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "far", "each")
	defer end(t, id, "completed")
	fanOut(t, id, "each", "running", 7, map[string]int32{"assigned": 7})
	child := names.FanOut{Run: id, Task: "each", From: childFrom}.ID()
	_, err := temporalClient.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: child, TaskQueue: names.ControlQueue},
		names.FanOutWorkflow, &v1.RunInput{Partition: &v1.Partition{From: childFrom, To: 7}})
	if err != nil {
		t.Fatal(err)
	}
	defer signal(t, child, endSignal, nil)
	var nodes []string
	for _, i := range f.get(t, id).GetTasks()["each"].GetInstances() {
		nodes = append(nodes, i.GetNode())
	}
	if want := []string{"n0", "n1", "n2", "n3", "n4", "n5", "n6"}; !slices.Equal(nodes, want) {
		t.Errorf("the instances are on %q", nodes)
	}
	// Commands for an instance go to the child that carries it.
	for instance, known := range map[string]bool{"each[5]": true, "each[1]": false, "each[7]": false} {
		_, err := f.client.HoldTask(t.Context(), connect.NewRequest(&v1.HoldTaskRequest{Id: id, Task: instance}))
		if known && err != nil {
			t.Errorf("hold %s: %v", instance, err)
		} else if !known {
			wantCode(t, "hold "+instance, err, connect.CodeNotFound)
		}
	}
}

// TestInstancesOfAnEndedChildAreReadFromTheStore reads the instances of an ended child from the store, without a workflow that
// answers.
func TestInstancesOfAnEndedChildAreReadFromTheStore(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "stored", "each")
	defer end(t, id, "completed")
	fanOut(t, id, "each", "running", 7, map[string]int32{"completed": 7})
	child := names.FanOut{Run: id, Task: "each", From: childFrom}.ID()
	task := &v1.Task{State: "completed"}
	for i := range int32(7 - childFrom) {
		task.Instances = append(task.Instances, &v1.Instance{Index: childFrom + i, State: "completed", Node: fmt.Sprint("kept", i), Result: &v1.TaskResult{Stdout: "x"}})
	}
	record := storekey.Result(id, 0, "each[5]", 0)
	if err := f.config.Store.PutMessage(t.Context(), record, &v1.ExecuteResponse{Result: &v1.TaskResult{Stdout: "all of it"}}); err != nil {
		t.Fatal(err)
	}
	status := &v1.StatusResponse{Run: &v1.Run{Id: child, Tasks: map[string]*v1.Task{"each": task}}, Records: map[string]string{"each[5]": record}}
	if err := f.config.Store.PutMessage(t.Context(), storekey.Status(child, 0), status); err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int32]string{0: "4 kept0 x|5 kept1 all of it|6 kept2 x", 2: "4 kept0 x|5 kept1 all of it", 1: "4 kept0 x"} {
		token := pagesOf(t, &v1.ListInstancesRequest{Task: "each"}).EncodeInstance(id, "each", childFrom)
		page, err := f.client.ListInstances(t.Context(), connect.NewRequest(&v1.ListInstancesRequest{Id: id, Task: "each", PageSize: size, PageToken: token}))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range page.Msg.GetItems() {
			got = append(got, fmt.Sprintf("%d %s %s", i.GetIndex(), i.GetNode(), i.GetResult().GetStdout()))
		}
		if all := strings.Join(got, "|"); all != want || (page.Msg.GetNextPageToken() == "") != (size == 0) {
			t.Errorf("a page of %d: %s, more: %v", size, all, page.Msg.GetNextPageToken() != "")
		}
	}
}

// TestChildPutsItsDeadLetterBack checks that the child that carries a dead-lettered instance puts it back.
func TestChildPutsItsDeadLetterBack(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "far", "each")
	defer end(t, id, "completed")
	fanOut(t, id, "each", "completed", deadInChild+1, map[string]int32{"completed": deadInChild, "dead_letter": 1})
	child := names.FanOut{Run: id, Task: "each", From: childFrom}.ID()
	_, err := temporalClient.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: child, TaskQueue: names.ControlQueue},
		names.FanOutWorkflow, &v1.RunInput{Partition: &v1.Partition{From: childFrom, To: deadInChild + 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer signal(t, child, endSignal, nil)
	for _, task := range []string{"", "each", "each[9]"} {
		res, err := f.client.RetryDeadLetter(t.Context(), connect.NewRequest(&v1.RetryDeadLetterRequest{Run: id, Task: task}))
		if err != nil || !slices.Equal(res.Msg.GetTasks(), []string{"each[9]"}) {
			t.Errorf("put back %q: %v, %v", task, res, err)
		}
	}
	if run := f.get(t, id); run.GetGeneration() != 0 || run.GetTasks()["each"].GetState() != "completed" {
		t.Errorf("the run is %v", run)
	}
}

func TestUnfinishedInstancesOfATerminatedRunAreCancelled(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "cut", "each")
	fanOut(t, id, "each", "running", 2, map[string]int32{"completed": 1, "assigned": 1},
		&v1.Instance{Index: 0, State: "completed"}, &v1.Instance{Index: 1, State: "assigned"})
	f.get(t, id) // makes the run process the signals
	if err := temporalClient.TerminateWorkflow(t.Context(), id, "", "test"); err != nil {
		t.Fatal(err)
	}
	task := f.get(t, id).GetTasks()["each"]
	if task.GetState() != "cancelled" || task.GetCounts()["cancelled"] != 1 || task.GetCounts()["completed"] != 1 || len(task.GetCounts()) != 2 {
		t.Errorf("the task is %v", task)
	}
	for _, i := range task.GetInstances() {
		if want := []string{"completed", "cancelled"}[i.GetIndex()]; i.GetState() != want {
			t.Errorf("instance %d is %s", i.GetIndex(), i.GetState())
		}
	}
}

// TestLogsSelectInstancesAndBatches sends the logs of instances and batches: those of all tasks, of one task, and of one
// instance.
func TestLogsSelectInstancesAndBatches(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "printing", "each", "other")
	writeLog(t, f.config.Store, id, "each[0]", 0, 2, "zero old\n")
	writeLog(t, f.config.Store, id, "each[0]", 1, 3, "zero\n")
	writeLog(t, f.config.Store, id, "other", 0, 1, "other\n")
	w := logs.NewWriter(f.config.Store, logs.Attempt{Run: id, Task: storekey.BatchName("each", 1, 3), Attempt: 0, Claim: 3}, logs.Options{})
	for _, name := range []string{"each[1]", "each[3]"} {
		w.Begin(name, 0, 3)
		print(t, w, logs.Stdout, name+"\n")
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	set(t, id, "other", 1, &v1.Task{State: "completed", AssignedAt: timestamppb.Now()})
	fanOut(t, id, "each", "completed", 4, map[string]int32{"completed": 4},
		&v1.Instance{Index: 0, State: "completed", Attempt: 1}, &v1.Instance{Index: 1, State: "completed"}, &v1.Instance{Index: 3, State: "completed"})
	f.get(t, id) // makes the run process the signals
	for _, test := range []struct {
		req  *v1.StreamRunLogsRequest
		want map[string]string
	}{
		{&v1.StreamRunLogsRequest{}, map[string]string{"each[0]": "zero\n", "each[1]": "each[1]\n", "each[3]": "each[3]\n", "other": "other\n"}},
		{&v1.StreamRunLogsRequest{Task: "each"}, map[string]string{"each[0]": "zero\n", "each[1]": "each[1]\n", "each[3]": "each[3]\n"}},
		{&v1.StreamRunLogsRequest{Task: "each", Follow: true}, map[string]string{"each[0]": "zero\n", "each[1]": "each[1]\n", "each[3]": "each[3]\n"}},
		{&v1.StreamRunLogsRequest{Task: "each", Attempt: proto.Int32(0)}, map[string]string{"each[0]": "zero old\n", "each[1]": "each[1]\n", "each[3]": "each[3]\n"}},
		{&v1.StreamRunLogsRequest{Task: "each[3]"}, map[string]string{"each[3]": "each[3]\n"}},
		{&v1.StreamRunLogsRequest{Task: "each[0]", Follow: true}, map[string]string{"each[0]": "zero\n"}},
		{&v1.StreamRunLogsRequest{Task: "each[2]"}, map[string]string{}},
	} {
		test.req.Id = id
		entries, err := f.client.StreamRunLogs(t.Context(), connect.NewRequest(test.req))
		if err != nil {
			t.Fatal(err)
		}
		if got := readLogs(t, entries); fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%v: got %q, want %q", test.req, got, test.want)
		}
	}
	entries, err := f.client.StreamRunLogs(t.Context(), connect.NewRequest(&v1.StreamRunLogsRequest{Id: id, Task: "each[9]"}))
	if err != nil {
		t.Fatal(err)
	}
	entries.Receive()
	wantCode(t, "an instance too many", entries.Err(), connect.CodeNotFound)
	end(t, id, "completed")
}

// TestFollowSendsNewInstances follows a task while its instances start and print.
func TestFollowSendsNewInstances(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "followed", "each")
	entries, err := f.client.StreamRunLogs(t.Context(), connect.NewRequest(&v1.StreamRunLogsRequest{Id: id, Task: "each", Follow: true}))
	if err != nil {
		t.Fatal(err)
	}
	next := func(want string) {
		t.Helper()
		if !entries.Receive() {
			t.Fatal(entries.Err())
		}
		if e := entries.Msg().GetEntries()[0]; e.GetTask()+" "+string(e.GetData()) != want {
			t.Errorf("got %v, want %s", e, want)
		}
	}
	fanOut(t, id, "each", "running", 2, map[string]int32{"assigned": 2}, &v1.Instance{Index: 0, State: "assigned"})
	writeLog(t, f.config.Store, id, "each[0]", 0, 3, "zero\n")
	next("each[0] zero\n")
	writeLog(t, f.config.Store, id, "each[1]", 0, 3, "one\n")
	next("each[1] one\n")
	fanOut(t, id, "each", "completed", 2, map[string]int32{"completed": 2}, &v1.Instance{Index: 0, State: "completed"})
	if entries.Receive() || entries.Err() != nil {
		t.Errorf("after the end: %v, %v", entries.Msg(), entries.Err())
	}
	end(t, id, "completed")
}
