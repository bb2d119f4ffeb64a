package gateway

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store/storekey"
	"switchyard/gateway/runretry"
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
func (f *fixture) letters(t *testing.T, req *v1.ListDeadLettersRequest) ([]string, *v1.ListDeadLettersResponse) {
	t.Helper()
	res, err := f.client.ListDeadLetters(t.Context(), connect.NewRequest(req))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, d := range res.Msg.GetItems() {
		all = append(all, d.GetRun()+" "+d.GetTask())
	}
	return all, res.Msg
}

func (f *fixture) retry(t *testing.T, run, task string) (*v1.RetryDeadLetterResponse, error) {
	t.Helper()
	res, err := f.client.RetryDeadLetter(t.Context(), connect.NewRequest(&v1.RetryDeadLetterRequest{Run: run, Task: task}))
	if err != nil {
		return nil, err
	}
	return res.Msg, nil
}

// TestListDeadLetters lists the dead letters of several runs, filtered and page by page. The lists cover all runs,
// so no other test may add a dead letter meanwhile.
func TestListDeadLetters(t *testing.T) {
	f := start(t)
	first, second, none := f.submit(t, "letters"), f.submit(t, "letters"), f.submit(t, "letters")
	deadLetter(t, first, "build", 2, "a")
	deadLetter(t, second, "build", 3, "b")
	deadLetter(t, second, "test", 4, "a")
	set(t, none, "build", 1, &v1.Task{State: "failed"})
	end(t, first, "failed")
	mine := func(req *v1.ListDeadLettersRequest) (all []string, res *v1.ListDeadLettersResponse) {
		found, res := f.letters(t, req)
		for _, d := range found {
			for _, run := range []string{first, second, none} {
				if len(d) > len(run) && d[:len(run)] == run {
					all = append(all, d)
				}
			}
		}
		return all, res
	}
	want := []string{second + " test", second + " build", first + " build"}
	eventually(t, "visibility has them", func() bool {
		all, _ := mine(&v1.ListDeadLettersRequest{})
		return slices.Equal(all, want)
	})
	for _, test := range []struct {
		req  *v1.ListDeadLettersRequest
		want []string
	}{
		{&v1.ListDeadLettersRequest{Node: "a"}, []string{want[0], want[2]}},
		{&v1.ListDeadLettersRequest{Node: "first"}, nil},
		{&v1.ListDeadLettersRequest{Type: "shell"}, want},
		{&v1.ListDeadLettersRequest{Type: "vps"}, nil},
		{&v1.ListDeadLettersRequest{Run: first}, want[2:]},
		{&v1.ListDeadLettersRequest{Run: none}, nil},
		{&v1.ListDeadLettersRequest{Run: second, Node: "b"}, want[1:2]},
	} {
		if got, _ := mine(test.req); !slices.Equal(got, test.want) {
			t.Errorf("%v: got %v, want %v", test.req, got, test.want)
		}
	}
	_, res := mine(&v1.ListDeadLettersRequest{Run: first})
	d := res.GetItems()[0]
	if d.GetWorkflow() != "letters" || d.GetType() != "shell" || d.GetReason() != "exit_code" || d.GetError() != "exit code 2" || d.GetDeadLetteredAt() == nil ||
		len(d.GetAttempts()) != 2 || d.GetAttempts()[1].GetExitCode() != 2 {
		t.Errorf("the dead letter is %v", d)
	}
	var paged []string
	token := ""
	for {
		all, res := mine(&v1.ListDeadLettersRequest{PageSize: 1, PageToken: token})
		paged = append(paged, all...)
		if token = res.GetNextPageToken(); token == "" {
			break
		}
	}
	if !slices.Equal(paged, want) {
		t.Errorf("page by page: %v", paged)
	}
}

// TestPurgedDeadLetterIsListedAgainWhenItFailsAnew purges one dead letter and then all. Each is listed again once its task is
// dead-lettered anew.
func TestPurgedDeadLetterIsListedAgainWhenItFailsAnew(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "purged", "a", "b", "c")
	for i, task := range []string{"a", "b"} {
		deadLetter(t, id, task, int32(i), "n")
	}
	purge := func(task string) ([]string, error) {
		res, err := f.client.PurgeDeadLetter(t.Context(), connect.NewRequest(&v1.PurgeDeadLetterRequest{Run: id, Task: task}))
		if err != nil {
			return nil, err
		}
		return res.Msg.GetTasks(), nil
	}
	_, err := purge("c")
	wantCode(t, "purge a task that is no dead letter", err, connect.CodeAborted)
	_, err = purge("d")
	wantCode(t, "purge a task that is not there", err, connect.CodeNotFound)
	if got, err := purge("a"); err != nil || !slices.Equal(got, []string{"a"}) {
		t.Errorf("purged %v, %v", got, err)
	}
	if got, _ := f.letters(t, &v1.ListDeadLettersRequest{Run: id}); !slices.Equal(got, []string{id + " b"}) {
		t.Errorf("left are %v", got)
	}
	_, err = f.retry(t, id, "a")
	wantCode(t, "retry what was purged", err, connect.CodeAborted)
	if got, err := purge(""); err != nil || !slices.Equal(got, []string{"b"}) {
		t.Errorf("purged %v, %v", got, err)
	}
	_, err = purge("")
	wantCode(t, "purge all of none", err, connect.CodeAborted)
	deadLetter(t, id, "a", 7, "n")
	if got, _ := f.letters(t, &v1.ListDeadLettersRequest{Run: id}); !slices.Equal(got, []string{id + " a"}) {
		t.Errorf("dead again are %v", got)
	}
	if state := f.get(t, id).GetTasks()["b"].GetState(); state != "dead_letter" {
		t.Errorf("b is %s", state)
	}
}

func TestRetryPutsDeadLettersOfAnOpenRunBack(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "again", "a", "b", "c")
	for _, task := range []string{"a", "b"} {
		deadLetter(t, id, task, 1, "n")
	}
	res, err := f.retry(t, id, "a")
	if want := (&v1.RetryDeadLetterResponse{Run: id, Tasks: []string{"a"}}); err != nil || !proto.Equal(res, want) {
		t.Fatalf("got %v, %v", res, err)
	}
	_, err = f.retry(t, id, "a")
	wantCode(t, "retry what is no dead letter any more", err, connect.CodeAborted)
	if refused, _ := errors.AsType[*connect.Error](err); refused == nil || refused.Message() != "task a of run "+id+" is not a dead letter; its state is queued" {
		t.Errorf("the error is %v", err)
	}
	_, err = f.retry(t, id, "x")
	wantCode(t, "retry what is not there", err, connect.CodeNotFound)
	if res, err := f.retry(t, id, ""); err != nil || !slices.Equal(res.GetTasks(), []string{"b"}) {
		t.Errorf("got %v, %v", res, err)
	}
	_, err = f.retry(t, id, "")
	wantCode(t, "retry all of none", err, connect.CodeAborted)
}

// TestRetryReopensAClosedRunOnce reopens a closed run exactly once for concurrent requests. Lists then show its newest execution
// only.
func TestRetryReopensAClosedRunOnce(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "revived", "a", "b")
	created := f.get(t, id).GetCreatedAt()
	deadLetter(t, id, "a", 3, "n")
	end(t, id, "failed")
	const callers = 5
	var wg sync.WaitGroup
	errs := make([]error, callers)
	for i := range callers {
		wg.Go(func() {
			var res *v1.RetryDeadLetterResponse
			if res, errs[i] = f.retry(t, id, "a"); errs[i] == nil && (res.GetGeneration() != 1 || !slices.Equal(res.GetTasks(), []string{"a"})) {
				errs[i] = fmt.Errorf("got %v", res)
			}
		})
	}
	wg.Wait()
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
		} else {
			wantCode(t, "the others", err, connect.CodeAborted)
		}
	}
	if done == 0 {
		t.Fatal("nobody has started the run again")
	}
	run := f.get(t, id)
	if run.GetGeneration() != 1 || run.GetState() != "running" || run.GetTasks()["a"].GetState() != "queued" || run.GetName() != "revived" {
		t.Errorf("the run is %v", run)
	}
	listed := func(state string) (ids []string, run *v1.Run) {
		res, err := f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{Name: "revived", State: state, PageSize: 1}))
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range res.Msg.GetItems() {
			ids, run = append(ids, item.GetId()+" "+item.GetState()), item
		}
		if res.Msg.GetNextPageToken() != "" {
			ids = append(ids, "more")
		}
		return ids, run
	}
	eventually(t, "the list has the new execution only", func() bool {
		ids, run := listed("")
		return slices.Equal(ids, []string{id + " running"}) && run.GetCreatedAt().AsTime().Sub(created.AsTime()).Abs() < limit
	})
	eventually(t, "the list of failed runs does not have it", func() bool {
		ids, _ := listed("failed")
		return len(ids) == 0
	})
	if got, _ := f.letters(t, &v1.ListDeadLettersRequest{Run: id}); len(got) != 0 {
		t.Errorf("dead letters %v", got)
	}

	// A caller with a stale view of the run does not reopen it once more, not even if the run has ended again in the
	// meantime.
	deadLetter(t, id, "a", 5, "n")
	end(t, id, "failed")
	stale, err := f.reader.Describe(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := f.retry(t, id, ""); err != nil || res.GetGeneration() != 2 {
		t.Fatalf("got %v, %v", res, err)
	}
	end(t, id, "completed")
	reopener := runretry.NewReopener(runretry.Config{
		Client: f.config.Client, Namespace: f.config.Namespace, Reader: f.reader, Store: f.config.Store,
	})
	if err := reopener.Reopen(t.Context(), stale, &v1.RunInput{Generation: 2, Retry: []string{"a"}}, nil); err != nil {
		t.Error(err)
	}
	err = reopener.Reopen(t.Context(), stale, &v1.RunInput{Generation: 2, Rerun: &v1.Rerun{Failed: true}}, nil)
	wantCode(t, "a stale request for something else", err, connect.CodeAlreadyExists)
	if run := f.get(t, id); run.GetState() != "completed" || run.GetGeneration() != 2 {
		t.Errorf("the run is %v", run)
	}
}

// TestRetryRefusesACancelledRun checks that dead letters of a cancelled run cannot be put back.
func TestRetryRefusesACancelledRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "revoked", "a")
	deadLetter(t, id, "a", 1, "n")
	end(t, id, "cancelled")
	_, err := f.retry(t, id, "a")
	wantCode(t, "retry of a cancelled run", err, connect.CodeAborted)
	if run := f.get(t, id); run.GetGeneration() != 0 || run.GetState() != "cancelled" {
		t.Errorf("the run is %v", run)
	}
}

// TestRetryStoresTheStatusOfATerminatedRun checks that a retry stores what a terminated run could not store itself.
func TestRetryStoresTheStatusOfATerminatedRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "shot", "a", "b")
	deadLetter(t, id, "a", 3, "n")
	signal(t, id, eventsSignal, &v1.EventsResponse{Slices: 2, Events: []*v1.Event{event(0, "a", "dead_lettered")}})
	f.get(t, id) // makes the run process the signals
	shot := temporalClient.GetWorkflow(t.Context(), id, "").GetRunID()
	if err := temporalClient.TerminateWorkflow(t.Context(), id, "", "test"); err != nil {
		t.Fatal(err)
	}
	if res, err := f.retry(t, id, "a"); err != nil || res.GetGeneration() != 1 {
		t.Fatalf("got %v, %v", res, err)
	}
	home := names.Home(id, shot)
	var status v1.StatusResponse
	if err := f.config.Store.GetMessage(t.Context(), storekey.Status(home, 0), &status); err != nil {
		t.Fatal(err)
	}
	if a, b := status.GetRun().GetTasks()["a"], status.GetRun().GetTasks()["b"]; a.GetState() != "dead_letter" || b.GetState() != "cancelled" || status.GetClaims()["a"] != 3 {
		t.Errorf("the stored status is %v", &status)
	}
	var part v1.EventSlice
	if err := f.config.Store.GetMessage(t.Context(), storekey.Events(home, 0, 2), &part); err != nil || len(part.GetEvents()) != 1 {
		t.Errorf("the stored events are %v, %v", &part, err)
	}
}
