package gateway

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store/storekey"
	"switchyard/gateway/runretry"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// deadLetter dead-letters a task of a scripted run on a node.
func deadLetter(t *testing.T, run, task string, claim int32, node string) {
	t.Helper()
	set(t, run, task, claim, &v1.Task{
		State: "dead_letter", Reason: "exit_code", Type: "shell", Node: node, Attempt: 1, Error: "exit code 2", CompletedAt: timestamppb.Now(),
		Attempts: []*v1.Attempt{{Node: "first", State: "failed"}, {Attempt: 1, Claim: claim, Node: node, State: "failed", ExitCode: 2}},
	})
}

// letters lists dead letters as "run task".
func (f *fixture) letters(t *testing.T, req *v1.ListDeadLettersRequest) (all []string, res *v1.ListDeadLettersResponse) {
	t.Helper()
	res = answer(t, f.client.ListDeadLetters, req)
	for _, d := range res.GetItems() {
		all = append(all, d.GetRun()+" "+d.GetTask())
	}
	return all, res
}

// TestListDeadLetters lists the dead letters of several runs, filtered and page by page.
func TestListDeadLetters(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	ann, _ := f.token(t, "letters-ann", v1.RoleUser) // who does not see the runs of other tests
	f.client = f.dialAs(t, ann)
	first, second, none := f.submit(t, "letters"), f.submit(t, "letters"), f.submit(t, "letters")
	deadLetter(t, first, "build", 2, "a")
	deadLetter(t, second, "build", 3, "b")
	deadLetter(t, second, "test", 4, "a")
	set(t, none, "build", 1, &v1.Task{State: "failed"})
	end(t, first, "failed")
	want := []string{second + " test", second + " build", first + " build"}
	eventually(t, "visibility has them", func() bool {
		all, _ := f.letters(t, &v1.ListDeadLettersRequest{})
		return slices.Equal(all, want)
	})
	for _, test := range []struct {
		req  *v1.ListDeadLettersRequest
		want []string
	}{
		{&v1.ListDeadLettersRequest{Node: "a"}, []string{want[0], want[2]}}, {&v1.ListDeadLettersRequest{Node: "first"}, nil},
		{&v1.ListDeadLettersRequest{Type: "shell"}, want}, {&v1.ListDeadLettersRequest{Type: "vps"}, nil},
		{&v1.ListDeadLettersRequest{Run: first}, want[2:]}, {&v1.ListDeadLettersRequest{Run: none}, nil}, {&v1.ListDeadLettersRequest{Run: second, Node: "b"}, want[1:2]},
		{&v1.ListDeadLettersRequest{PageSize: 1}, want},
	} {
		var got []string
		for more := true; more; more = test.req.GetPageToken() != "" {
			page, res := f.letters(t, test.req)
			got, test.req.PageToken = append(got, page...), res.GetNextPageToken()
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v: got %v, want %v", test.req, got, test.want)
		}
	}
	_, res := f.letters(t, &v1.ListDeadLettersRequest{Run: first})
	if d := res.GetItems()[0]; d.GetWorkflow() != "letters" || d.GetType() != "shell" || d.GetReason() != "exit_code" || d.GetError() != "exit code 2" || d.GetDeadLetteredAt() == nil ||
		len(d.GetAttempts()) != 2 || d.GetAttempts()[1].GetExitCode() != 2 {
		t.Errorf("the dead letter is %v", d)
	}
}

// TestDeadLettersOfAnOpenRunAreHandledOnce purges dead letters and puts others back, one by one and all at once. A purged one is
// listed again once its task is dead-lettered anew.
func TestDeadLettersOfAnOpenRunAreHandledOnce(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "handled", "a", "b", "c", "d", "e")
	for i, task := range []string{"a", "b", "d", "e"} {
		deadLetter(t, id, task, int32(i), "n")
	}
	retry := func(task string) []string {
		t.Helper()
		return do(t, f.client.RetryDeadLetter, &v1.RetryDeadLetterRequest{Run: id, Task: task}).GetTasks()
	}
	purge := func(task string) []string {
		t.Helper()
		return do(t, f.client.PurgeDeadLetter, &v1.PurgeDeadLetterRequest{Run: id, Task: task}).GetTasks()
	}
	wantLetters := func(want ...string) {
		t.Helper()
		if got, _ := f.letters(t, &v1.ListDeadLettersRequest{Run: id}); !slices.Equal(got, want) {
			t.Errorf("the dead letters are %q, want %q", got, want)
		}
	}
	refuse := func(what, task string, code connect.Code, texts ...string) {
		t.Helper()
		refused(t, "retry "+what, f.client.RetryDeadLetter, &v1.RetryDeadLetterRequest{Run: id, Task: task}, code, texts...)
		refused(t, "purge "+what, f.client.PurgeDeadLetter, &v1.PurgeDeadLetterRequest{Run: id, Task: task}, code, texts...)
	}
	refuse("a task that is no dead letter", "c", connect.CodeAborted, "task c of run "+id)
	refuse("a task that is not there", "x", connect.CodeNotFound)
	if got := purge("a"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("purged %v", got)
	}
	refuse("what was purged", "a", connect.CodeAborted)
	if got := retry("d"); !slices.Equal(got, []string{"d"}) {
		t.Errorf("put back %v", got)
	}
	refuse("what is no dead letter any more", "d", connect.CodeAborted, "task d of run "+id+" is not a dead letter; its state is queued")
	wantLetters(id+" e", id+" b")
	if got := purge(""); !slices.Equal(got, []string{"b", "e"}) {
		t.Errorf("purged %v", got)
	}
	refuse("all of none", "", connect.CodeAborted)
	deadLetter(t, id, "a", 7, "n")
	wantLetters(id + " a")
	if got := retry(""); !slices.Equal(got, []string{"a"}) {
		t.Errorf("put back %v", got)
	}
	if b := f.get(t, id).GetTasks()["b"]; b.GetState() != "dead_letter" {
		t.Errorf("b is %v", b)
	}
}

// TestChildPutsItsDeadLetterBack checks that the child that carries a dead-lettered instance puts it back.
func TestChildPutsItsDeadLetterBack(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "far", "each")
	fanOut(t, id, "each", "completed", deadInChild+1, map[string]int32{"completed": deadInChild, "dead_letter": 1})
	startPart(t, id, "each", deadInChild+1)
	for _, task := range []string{"", "each", "each[9]"} {
		if got := do(t, f.client.RetryDeadLetter, &v1.RetryDeadLetterRequest{Run: id, Task: task}).GetTasks(); !slices.Equal(got, []string{"each[9]"}) {
			t.Errorf("put back %q: %v", task, got)
		}
	}
	if run := f.get(t, id); run.GetGeneration() != 0 || run.GetTasks()["each"].GetState() != "completed" {
		t.Errorf("the run is %v", run)
	}
}

// TestRetryReopensAClosedRunOnce reopens a closed run exactly once for concurrent requests. Lists then show its newest execution
// only.
func TestRetryReopensAClosedRunOnce(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "revived", "a", "b")
	deadLetter(t, id, "a", 3, "n")
	end(t, id, "failed")
	var wg sync.WaitGroup
	errs := make([]error, 5)
	for i := range errs {
		wg.Go(func() {
			res, err := f.client.RetryDeadLetter(t.Context(), connect.NewRequest(&v1.RetryDeadLetterRequest{Run: id, Task: "a"}))
			if errs[i] = err; err == nil && (res.Msg.GetGeneration() != 1 || !slices.Equal(res.Msg.GetTasks(), []string{"a"})) {
				errs[i] = fmt.Errorf("got %v", res.Msg)
			}
		})
	}
	wg.Wait()
	if !slices.Contains(errs, nil) {
		t.Fatal("nobody has started the run again")
	}
	for _, err := range slices.DeleteFunc(errs, func(err error) bool { return err == nil }) {
		wantCode(t, "the others", err, connect.CodeAborted)
	}
	if run := f.get(t, id); run.GetGeneration() != 1 || run.GetState() != "running" || run.GetTasks()["a"].GetState() != "queued" || run.GetName() != "revived" {
		t.Errorf("the run is %v", run)
	}
	for state, want := range map[string][]string{"": {id}, "failed": nil} {
		eventually(t, "the list has the new execution only", func() bool {
			ids, next := f.list(t, &v1.ListRunsRequest{Name: "revived", State: state, PageSize: 1})
			return slices.Equal(ids, want) && next == ""
		})
	}

	// A caller with a stale view of the run does not reopen it once more, not even if the run has ended again in the
	// meantime.
	deadLetter(t, id, "a", 5, "n")
	end(t, id, "failed")
	stale := f.describe(t, id)
	if res := do(t, f.client.RetryDeadLetter, &v1.RetryDeadLetterRequest{Run: id}); res.GetGeneration() != 2 {
		t.Fatalf("got %v", res)
	}
	end(t, id, "completed")
	reopener := runretry.NewReopener(runretry.Config{
		Client: f.config.Client, Namespace: f.config.Namespace, Reader: f.reader, Store: f.config.Store,
	})
	if err := reopener.Reopen(t.Context(), stale, &historyv1.RunInput{Generation: 2, Retry: []string{"a"}}, nil); err != nil {
		t.Error(err)
	}
	err := reopener.Reopen(t.Context(), stale, &historyv1.RunInput{Generation: 2, Rerun: &historyv1.Rerun{Failed: true}}, nil)
	wantCode(t, "a stale request for something else", err, connect.CodeAlreadyExists)
	if run := f.get(t, id); run.GetState() != "completed" || run.GetGeneration() != 2 {
		t.Errorf("the run is %v", run)
	}
}

// TestRetryStoresTheStatusOfATerminatedRun checks that a retry stores what a terminated run could not store itself. A cancelled
// run cannot be reopened at all.
func TestRetryStoresTheStatusOfATerminatedRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	cancelled, id := f.submit(t, "revoked", "a"), f.submit(t, "shot", "a", "b")
	deadLetter(t, cancelled, "a", 1, "n")
	end(t, cancelled, "cancelled")
	refused(t, "retry of a cancelled run", f.client.RetryDeadLetter, &v1.RetryDeadLetterRequest{Run: cancelled, Task: "a"}, connect.CodeAborted)
	deadLetter(t, id, "a", 3, "n")
	signal(t, id, eventsSignal, &historyv1.EventsResponse{Slices: 2, Events: []*v1.Event{event(0, "a", "dead_lettered")}})
	f.get(t, id) // makes the run process the signals
	home := names.Home(id, f.describe(t, id).GetWorkflowExecutionInfo().GetExecution().GetRunId())
	endByForce(t, id, "test")
	if res := do(t, f.client.RetryDeadLetter, &v1.RetryDeadLetterRequest{Run: id, Task: "a"}); res.GetGeneration() != 1 {
		t.Errorf("got %v", res)
	}
	var status historyv1.StatusResponse
	if err := f.config.Store.GetMessage(t.Context(), storekey.Status(home, 0), &status); err != nil {
		t.Fatal(err)
	}
	if a, b := status.GetRun().GetTasks()["a"], status.GetRun().GetTasks()["b"]; a.GetState() != "dead_letter" || b.GetState() != "cancelled" || status.GetClaims()["a"] != 3 {
		t.Errorf("the stored status is %v", &status)
	}
	var part historyv1.EventSlice
	if err := f.config.Store.GetMessage(t.Context(), storekey.Events(home, 0, 2), &part); err != nil || len(part.GetEvents()) != 1 {
		t.Errorf("the stored events are %v, %v", &part, err)
	}
}
