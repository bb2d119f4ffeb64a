package gateway

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// retryRun starts the next generation of a run, and returns its input.
func (f *fixture) retryRun(t *testing.T, run string, from ...string) *historyv1.RunInput {
	t.Helper()
	res := do(t, f.client.RetryRun, &v1.RetryRunRequest{Id: run, From: from})
	in := f.inputOf(t, run)
	if in.GetGeneration() != res.GetGeneration() {
		t.Errorf("generation %d is retried as %v", res.GetGeneration(), in)
	}
	return in
}

// inputOf returns the input of the newest execution of a run.
func (f *fixture) inputOf(t *testing.T, run string) *historyv1.RunInput {
	t.Helper()
	in, err := f.reader.Input(t.Context(), f.describe(t, run).GetWorkflowExecutionInfo().GetExecution())
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// TestRetryRunStartsTheNextGeneration retries failed, cancelled and completed runs, the first time with a new limit of an agent.
func TestRetryRunStartsTheNextGeneration(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submitDocument(t, document("again", "build")+"  writer: { type: subagent, spec: { prompt: write, model: m, maxTurns: 3 } }\n")
	refused(t, "an open run", f.client.RetryRun, &v1.RetryRunRequest{Id: id}, connect.CodeAborted)
	set(t, id, "build", 1, &v1.Task{State: "completed", Type: "shell"})
	set(t, id, "writer", 1, &v1.Task{State: "failed", Type: "subagent"})
	end(t, id, "failed")
	refused(t, "a limit of no agent", f.client.RetryRun, &v1.RetryRunRequest{Id: id, Limits: map[string]*v1.AgentLimits{"build": {MaxTurns: 9}}}, connect.CodeInvalidArgument)
	if res := do(t, f.client.RetryRun, &v1.RetryRunRequest{Id: id, Limits: map[string]*v1.AgentLimits{"writer": {MaxTurns: 9}}}); res.GetId() != id || res.GetGeneration() != 1 {
		t.Errorf("got %v", res)
	}
	if in := f.inputOf(t, id); in.GetGeneration() != 1 || !in.GetRerun().GetFailed() || len(in.GetRerun().GetFrom()) > 0 || in.GetDefinition().GetName() != "again" {
		t.Errorf("it was started with %v", in)
	}
	end(t, id, "cancelled")
	refused(t, "an unknown task", f.client.RetryRun, &v1.RetryRunRequest{Id: id, From: []string{"biuld"}}, connect.CodeNotFound, "did you mean build?")
	in := f.retryRun(t, id, "writer", "build", "writer")
	if in.GetGeneration() != 2 || in.GetRerun().GetFailed() || !slices.Equal(in.GetRerun().GetFrom(), []string{"build", "writer"}) {
		t.Errorf("it was started with %v", in)
	}
	if limit := in.GetDefinition().GetTasks()["writer"].GetSpec().AsMap()["maxTurns"]; limit != 9.0 {
		t.Errorf("the generation after the raise has the limit %v", limit)
	}
	for _, task := range []string{"build", "writer"} {
		set(t, id, task, 3, &v1.Task{State: "completed", Counts: map[string]int32{"dead_letter": 1}})
	}
	end(t, id, "completed")
	refused(t, "a run that has completed", f.client.RetryRun, &v1.RetryRunRequest{Id: id}, connect.CodeAborted, "switchyard dlq retry")
}

// TestConcurrentRetriesStartOneGeneration checks that of many concurrent retries only one plan takes effect.
func TestConcurrentRetriesStartOneGeneration(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "raced", "a", "b")
	end(t, id, "failed")
	var wg sync.WaitGroup
	var started atomic.Int32
	for i := range 6 {
		wg.Go(func() {
			from := [][]string{nil, {"a"}, {"b"}}[i%3]
			res, err := f.client.RetryRun(t.Context(), connect.NewRequest(&v1.RetryRunRequest{Id: id, From: from}))
			switch {
			case err == nil && slices.Equal(f.inputOf(t, id).GetRerun().GetFrom(), from) && res.Msg.GetGeneration() == 1:
				started.Add(1) // both callers with the same plan may have looked before the start
			case err == nil:
				t.Errorf("another generation was started than one from %v", from)
			default:
				wantCode(t, "who came too late", err, connect.CodeAborted)
			}
		})
	}
	wg.Wait()
	if n := started.Load(); n != 1 && n != 2 {
		t.Errorf("%d have started it", n)
	}
	end(t, id, "completed")
}

// TestRerunCopiesDefinitionAndInput starts a new run with the definition and the input of another run, open or ended.
func TestRerunCopiesDefinitionAndInput(t *testing.T) {
	t.Parallel()
	f := start(t)
	input, _ := structpb.NewStruct(map[string]any{"channel": "beta", "n": 1})
	id := f.submitDocument(t, document("anew", "a"), func(req *v1.SubmitRunRequest) { req.Input = input })
	values, _ := structpb.NewStruct(map[string]any{"n": 2})
	for _, test := range []struct {
		values *structpb.Struct
		n      float64
	}{{nil, 1}, {values, 2}} {
		res := do(t, f.client.RerunRun, &v1.RerunRunRequest{Id: id, Input: test.values})
		terminate(t, res.GetId())
		run := f.get(t, res.GetId())
		got := run.GetInput().AsMap()
		if res.GetName() != "anew" || run.GetId() == id || run.GetName() != "anew" || run.GetGeneration() != 0 || got["channel"] != "beta" || got["n"] != test.n {
			t.Errorf("the run is %v", run)
		}
		if test.n == 1 {
			end(t, id, "failed")
		}
	}
}

// TestRetryWaitsForTheStore retries a run, and puts back a dead letter, while the store is temporarily down.
func TestRetryWaitsForTheStore(t *testing.T) {
	t.Parallel()
	for name, retry := range map[string]func(f *fixture, id string){
		"run": func(f *fixture, id string) { f.retryRun(t, id) },
		"letter": func(f *fixture, id string) {
			do(t, f.client.RetryDeadLetter, &v1.RetryDeadLetterRequest{Run: id, Task: "a"})
		},
	} {
		dir := filepath.Join(t.TempDir(), "store")
		f := startIn(t, dir)
		id := f.submit(t, name, "a")
		set(t, id, "a", 1, &v1.Task{State: "dead_letter"})
		end(t, id, "failed")
		if err := os.Rename(dir, dir+"-away"); err != nil {
			t.Fatal(err)
		}
		back := time.AfterFunc(300*time.Millisecond, func() {
			if err := os.Rename(dir+"-away", dir); err != nil {
				t.Error(err)
			}
		})
		defer back.Stop()
		retry(f, id)
		if got := f.inputOf(t, id).GetGeneration(); got != 1 {
			t.Errorf("%s: the newest generation is %d", name, got)
		}
		end(t, id, "completed")
	}
}

// TestRetryAfterForceKeepsWhatPartsHaveCompleted checks that the retry of a run that was ended by force refers to the
// previous execution, and finds what the fan-out parts that ended along with the run had completed.
func TestRetryAfterForceKeepsWhatPartsHaveCompleted(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "forced", "each")
	child := startPart(t, id, "each", 10)
	signal(t, id, setSignal, &historyv1.StatusResponse{Partitions: []*historyv1.PartitionReport{{Task: "each", From: childFrom}}})
	fanOut(t, id, "each", "running", 10, map[string]int32{"pending": 10})
	f.get(t, id) // makes the run process the signals, and the part answer
	ended := f.describe(t, id).GetWorkflowExecutionInfo().GetExecution().GetRunId()
	for _, workflow := range []string{child, id} {
		endByForce(t, workflow, "ended by force")
	}
	if in := f.retryRun(t, id); in.GetTerminated() != ended {
		t.Errorf("the next generation follows execution %q, want %q", in.GetTerminated(), ended)
	}
	var kept historyv1.StatusResponse
	if err := f.config.Store.GetMessage(t.Context(), storekey.Status(child, 0), &kept); err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, i := range kept.GetRun().GetTasks()["each"].GetInstances() {
		states = append(states, i.GetState())
	}
	if want := []string{"completed", "cancelled"}; !slices.Equal(states, want) {
		t.Errorf("the part has left instances that are %q, want %q", states, want)
	}
}

// TestRetryAfterForceKeepsWhatTheRunHasShown checks that the generation after a forced end finds the events before it, and no task
// that counts as running.
func TestRetryAfterForceKeepsWhatTheRunHasShown(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "forced", "build", "test")
	chain := f.inputOf(t, id).GetChain()
	signal(t, id, setSignal, &historyv1.StatusResponse{Chain: chain, Run: &v1.Run{Tasks: map[string]*v1.Task{
		"build": {State: "running", Type: "shell"}, "test": {State: "completed", Type: "shell"},
	}}})
	signal(t, id, eventsSignal, &historyv1.EventsResponse{Events: []*v1.Event{event(1, "build", "started")}})
	eventually(t, "the gateway has read the whole run", func() bool { return f.get(t, id).GetTasks()["test"].GetState() == "completed" })
	do(t, f.client.CancelRun, &v1.CancelRunRequest{Id: id, Force: true})
	f.retryRun(t, id, "test")
	home := names.Home(id, chain)
	var kept historyv1.StatusResponse
	if err := f.config.Store.GetMessage(t.Context(), storekey.Status(home, 0), &kept); err != nil {
		t.Fatal(err)
	}
	if tasks := kept.GetRun().GetTasks(); tasks["build"].GetState() != "cancelled" || tasks["test"].GetState() != "completed" {
		t.Errorf("the tasks are kept as %v", tasks)
	}
	var events historyv1.EventSlice
	if err := f.config.Store.GetMessage(t.Context(), storekey.Events(home, 0, 0), &events); err != nil || len(events.GetEvents()) != 1 {
		t.Errorf("the events are kept as %v, %v", &events, err)
	}
}
