package taskrunner

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor/fake"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func (b *bench) recordOf(task string, attempt int32) *historyv1.ExecuteResponse {
	b.t.Helper()
	var record historyv1.ExecuteResponse
	if err := b.Store.GetMessage(b.t.Context(), storekey.Result("r-1", 0, task, attempt), &record); err != nil {
		b.t.Fatal(err)
	}
	return &record
}

func (b *bench) put(task string, attempt int32, record *historyv1.ExecuteResponse) {
	b.t.Helper()
	if err := b.Store.PutMessage(b.t.Context(), storekey.Result("r-1", 0, task, attempt), record); err != nil {
		b.t.Fatal(err)
	}
}

// The record of a completed attempt equals its answer, and a second dispatch of the same attempt returns it.
func TestFirstRecordCounts(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string][]fake.Step{"a": {{Stdout: "first"}, {Stdout: "second"}}})
	first := b.start(t.Context(), request("a")).answer()
	if record := b.recordOf("a", 0); first.GetRecord() != "" || !proto.Equal(record, first) {
		t.Errorf("the record is %v, the answer %v", record, first)
	}
	second := b.start(t.Context(), request("a")).answer()
	if !proto.Equal(second, first) || len(b.fake.Calls()) != 2 {
		t.Errorf("the second answer is %v, the first %v", second, first)
	}
	req := request("a")
	req.Attempt = 1
	if third := b.start(t.Context(), req).answer(); third.GetResult().GetStdout() != "second" {
		t.Errorf("another attempt says %v", third)
	}
}

// An attempt that was never reported does not run again if it left a record.
func TestUnheardRecordIsTheAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for attempt, out := range []string{"short", strings.Repeat("x", 2000)} {
		b.put("a", int32(attempt), &historyv1.ExecuteResponse{State: "completed", Node: "other", Result: &v1.TaskResult{Stdout: out, ExitCode: 0}})
		req := request("a")
		req.Attempt, req.Claim, req.Unacknowledged = 7, 8, []int32{5, int32(attempt)}
		res := b.start(t.Context(), req).answer()
		if res.GetState() != "completed" || res.GetNode() != "other" || !strings.HasSuffix(out, res.GetResult().GetStdout()) {
			t.Errorf("got %v", res)
		}
		if want := storekey.Result("r-1", 0, "a", int32(attempt)); res.GetRecord() != want || len(res.GetResult().GetStdout()) > 1000 {
			t.Errorf("the answer has %d bytes, its record is %q", len(res.GetResult().GetStdout()), res.GetRecord())
		}
	}
	if n := len(b.fake.Calls()); n != 0 {
		t.Errorf("%d attempts ran", n)
	}
}

// A recorded failure does not count as the answer, and a later success replaces it.
func TestRecordedFailureIsNoAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string][]fake.Step{"a": {{Stdout: strings.Repeat("x", 2000), Result: fake.Exit(1).Result}, {Stdout: "better"}}})
	failed := b.start(t.Context(), request("a")).answer()
	want(t, failed, "failed", "exit_code")
	if record := b.recordOf("a", 0); failed.GetRecord() == "" || record.GetState() != "failed" || len(record.GetResult().GetStdout()) != 2000 {
		t.Errorf("the record is %v", record)
	}
	req := request("a")
	req.Claim, req.Unacknowledged = 2, []int32{0}
	want(t, b.start(t.Context(), req).answer(), "completed", "")
	if record := b.recordOf("a", 0); record.GetState() != "completed" || record.GetResult().GetStdout() != "better" {
		t.Errorf("the record is %v", record)
	}
	small := request("b")
	b.Executors["shell"] = fake.New("shell", map[string][]fake.Step{"b": {fake.Exit(1)}})
	want(t, b.start(t.Context(), small).answer(), "failed", "exit_code")
	if err := b.Store.GetMessage(t.Context(), storekey.Result("r-1", 0, "b", 0), &historyv1.ExecuteResponse{}); err == nil {
		t.Error("a small failure was recorded")
	}
}

// TestResultRecordedMeanwhileAnswersTheAttempt checks that a result that is recorded while another attempt runs is that
// attempt's answer as well.
func TestResultRecordedMeanwhileAnswersTheAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string][]fake.Step{"a": {{Block: true, Result: fake.Exit(1).Result}}})
	req := request("a")
	req.Attempt, req.Claim, req.Unacknowledged = 1, 2, []int32{0}
	e := b.start(t.Context(), req)
	b.runs("a")
	b.put("a", 0, &historyv1.ExecuteResponse{State: "completed", Node: "other"})
	b.fake.Release("a")
	if res := e.answer(); res.GetState() != "completed" || res.GetNode() != "other" {
		t.Errorf("got %v", res)
	}
}

// While the store is away, it is unknown whether the task must run, so it does not start.
func TestUnheardWithoutStore(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	if err := b.Store.Close(); err != nil {
		t.Fatal(err)
	}
	b.Timing.StartTimeout = 250 * time.Millisecond
	req := request("a")
	req.Claim, req.Unacknowledged = 2, []int32{0}
	want(t, b.start(t.Context(), req).answer(), "moved", "not_started")
	if n := len(b.fake.Calls()); n != 0 {
		t.Errorf("%d attempts ran", n)
	}
	// A completed attempt is reported even without the store.
	b.Timing.StartTimeout, b.Timing.RecordTimeout = 0, 100*time.Millisecond
	want(t, b.start(t.Context(), request("a")).answer(), "completed", "")
}
