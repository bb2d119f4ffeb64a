package gateway

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

func (f *fixture) retryRun(t *testing.T, run string, from ...string) (*v1.RetryRunResponse, error) {
	t.Helper()
	res, err := f.client.RetryRun(t.Context(), connect.NewRequest(&v1.RetryRunRequest{Id: run, From: from}))
	if err != nil {
		return nil, err
	}
	return res.Msg, nil
}

// inputOf returns the input of the newest execution of a run.
func (f *fixture) inputOf(t *testing.T, run string) *v1.RunInput {
	t.Helper()
	desc, err := f.reader.Describe(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	in, err := f.reader.Input(t.Context(), desc.GetWorkflowExecutionInfo().GetExecution())
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// TestRetryRunStartsTheNextGeneration retries failed, cancelled and completed runs.
func TestRetryRunStartsTheNextGeneration(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "again", "build", "test")
	_, err := f.retryRun(t, id)
	wantCode(t, "an open run", err, connect.CodeAborted)
	set(t, id, "build", 1, &v1.Task{State: "completed"})
	set(t, id, "test", 1, &v1.Task{State: "failed"})
	end(t, id, "failed")

	if res, err := f.retryRun(t, id); err != nil || res.GetId() != id || res.GetGeneration() != 1 {
		t.Fatalf("got %v, %v", res, err)
	}
	in := f.inputOf(t, id)
	if in.GetGeneration() != 1 || !in.GetRerun().GetFailed() || len(in.GetRerun().GetFrom()) > 0 || in.GetDefinition().GetName() != "again" {
		t.Errorf("it was started with %v", in)
	}
	end(t, id, "cancelled")

	_, err = f.retryRun(t, id, "biuld")
	wantCode(t, "an unknown task", err, connect.CodeNotFound)
	if err == nil || !strings.Contains(err.Error(), "did you mean build?") {
		t.Errorf("the error is %v", err)
	}
	if res, err := f.retryRun(t, id, "test", "build", "test"); err != nil || res.GetGeneration() != 2 {
		t.Fatalf("got %v, %v", res, err)
	}
	if in := f.inputOf(t, id); in.GetRerun().GetFailed() || !slices.Equal(in.GetRerun().GetFrom(), []string{"build", "test"}) {
		t.Errorf("it was started with %v", in)
	}
	for _, task := range []string{"build", "test"} {
		set(t, id, task, 3, &v1.Task{State: "completed"})
	}
	end(t, id, "completed")

	_, err = f.retryRun(t, id)
	wantCode(t, "a run that has completed", err, connect.CodeAborted)
	eventually(t, "it is listed as completed", func() bool { return f.listed(t, id) == "completed" })
	if res, err := f.retryRun(t, id, "test"); err != nil || res.GetGeneration() != 3 {
		t.Fatalf("got %v, %v", res, err)
	}
	eventually(t, "the generation that completed is not listed any more", func() bool {
		ids, _ := f.list(t, &v1.ListRunsRequest{Name: "again", State: "completed"})
		return len(ids) == 0 && f.listed(t, id) == "running"
	})
	end(t, id, "completed")
	_, err = f.retryRun(t, "again-nope")
	wantCode(t, "an unknown run", err, connect.CodeNotFound)
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
	res, err := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Document{Document: document("anew", "a")}, Input: input,
		Options: &v1.RunOptions{PlacementTimeout: nil},
	}))
	if err != nil {
		t.Fatal(err)
	}
	id := res.Msg.GetId()
	values, _ := structpb.NewStruct(map[string]any{"n": 2})
	for _, test := range []struct {
		values *structpb.Struct
		n      float64
	}{{nil, 1}, {values, 2}} {
		res, err := f.client.RerunRun(t.Context(), connect.NewRequest(&v1.RerunRunRequest{Id: id, Input: test.values}))
		if err != nil {
			t.Fatal(err)
		}
		if res.Msg.GetName() != "anew" {
			t.Errorf("the new run is one of %q", res.Msg.GetName())
		}
		run := f.get(t, res.Msg.GetId())
		got := run.GetInput().AsMap()
		if run.GetId() == id || run.GetName() != "anew" || run.GetGeneration() != 0 || got["channel"] != "beta" || got["n"] != test.n {
			t.Errorf("the run is %v", run)
		}
		end(t, run.GetId(), "completed")
	}
	end(t, id, "failed")
	eventually(t, "several runs are listed", func() bool {
		ids, _ := f.list(t, &v1.ListRunsRequest{Name: "anew"})
		return len(ids) > 1
	})
	again, err := f.client.RerunRun(t.Context(), connect.NewRequest(&v1.RerunRunRequest{Id: "anew"}))
	wantCode(t, "an ambiguous prefix", err, connect.CodeInvalidArgument)
	if err == nil {
		t.Errorf("it started %v", again.Msg)
	}
	again, err = f.client.RerunRun(t.Context(), connect.NewRequest(&v1.RerunRunRequest{Id: id}))
	if err != nil {
		t.Fatal(err)
	}
	end(t, again.Msg.GetId(), "completed")
}

// TestRetryAfterForceKeepsWhatPartsHaveCompleted checks that the retry of a run that was ended by force refers to the
// previous execution, and finds what the fan-out parts that ended along with the run had completed.
func TestRetryAfterForceKeepsWhatPartsHaveCompleted(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "forced", "each")
	child := names.FanOut{Run: id, Task: "each", From: childFrom}.ID()
	_, err := temporalClient.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: child, TaskQueue: names.ControlQueue},
		names.FanOutWorkflow, &v1.RunInput{Partition: &v1.Partition{From: childFrom, To: 10}})
	if err != nil {
		t.Fatal(err)
	}
	signal(t, id, setSignal, &v1.StatusResponse{Partitions: []*v1.PartitionReport{{Task: "each", From: childFrom}}})
	fanOut(t, id, "each", "running", 10, map[string]int32{"pending": 10})
	f.get(t, id)                                    // makes the run process the signals
	eventually(t, "the part answers", func() bool { // a workflow that ends before its first task cannot be read
		_, err := temporalClient.QueryWorkflow(t.Context(), child, "", names.StatusQuery, &v1.StatusRequest{})
		return err == nil
	})
	ended := newestExecution(t, id)
	for _, workflow := range []string{child, id} {
		if err := temporalClient.TerminateWorkflow(t.Context(), workflow, "", "ended by force"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.retryRun(t, id); err != nil {
		t.Fatal(err)
	}
	if in := f.inputOf(t, id); in.GetTerminated() != ended {
		t.Errorf("the next generation follows execution %q, want %q", in.GetTerminated(), ended)
	}
	var kept v1.StatusResponse
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

// newestExecution returns the run id of the newest execution of a run.
func newestExecution(t *testing.T, id string) string {
	t.Helper()
	desc, err := temporalClient.DescribeWorkflowExecution(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	return desc.GetWorkflowExecutionInfo().GetExecution().GetRunId()
}
