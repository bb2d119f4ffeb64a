package taskrunner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/logs"
	"switchyard/activities/store"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// batchOf returns a request for some of the hundred instances of task a.
func batchOf(indices ...int32) *historyv1.ExecuteRequest {
	req := request("a")
	req.Count, req.Index = 100, new(indices[0])
	for _, i := range indices {
		req.Batch = append(req.Batch, &historyv1.Member{Index: i, Claim: req.GetClaim(), Attempt: req.GetAttempt()})
	}
	return req
}

// ends returns a line for each member of a batch: its index, state and reason.
func ends(results []*historyv1.MemberResult) (lines []string) {
	for _, r := range results {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d %s %s", r.GetIndex(), r.GetState(), r.GetReason())))
	}
	return lines
}

func wantEnds(t *testing.T, got []*historyv1.MemberResult, want ...string) {
	t.Helper()
	if lines := ends(got); !slices.Equal(lines, want) {
		t.Errorf("the members ended as %q, want %q", lines, want)
	}
}

func steps(all ...fake.Step) map[string][]fake.Step { return map[string][]fake.Step{"a": all} }

// Each member has its own end, output and log. The batch has one record.
func TestBatch(t *testing.T) {
	t.Parallel()
	b := newBench(t, steps(
		fake.Step{}, fake.Exit(3), fake.Step{Stdout: "out", Output: "x=1"}, fake.Step{ContextUpdate: "y=2"},
		fake.Step{StartErr: &executor.StartError{ExitCode: 127, Err: fmt.Errorf("no such command")}}, fake.Step{Stderr: "why", Result: executor.Result{ExitCode: 1}}, fake.Step{},
	))
	res := b.start(t.Context(), batchOf(3, 4, 5, 6, 7, 8, 9)).answer()
	want(t, res, "completed", "")
	wantEnds(t, res.GetBatch(), "3", "4 failed exit_code", "5 completed", "6 completed", "7 failed start_failed", "8 failed exit_code", "9")
	got := res.GetBatch()
	if got[0].GetResult() != nil || got[1].GetResult().GetExitCode() != 3 || got[2].GetResult().GetStdout() != "out" ||
		got[2].GetResult().GetOutput().GetFields()["x"].GetStringValue() != "1" || got[3].GetResult().GetContextUpdate().GetFields()["y"].GetStringValue() != "2" ||
		got[4].GetResult().GetExitCode() != 127 || got[4].GetStartedMs() != -1 || got[5].GetError() != "exit code 1: why" || got[6].GetStartedMs() < 0 {
		t.Errorf("got %v", got)
	}
	if res.GetNode() != "n" || res.GetStartedAt() == nil || res.GetAssignedAt() == nil || res.GetResult() != nil {
		t.Errorf("the batch itself says %v", res)
	}
	for i, call := range b.fake.Calls() {
		index := fmt.Sprint(3 + i)
		if env := call.Attempt.Env; env["SWITCHYARD_INDEX"] != index || env["SWITCHYARD_COUNT"] != "100" || env["SWITCHYARD_TASK_ID"] != "r-1/a["+index+"]" || env["SWITCHYARD_TASK"] != "a" {
			t.Errorf("member %d has the environment %v", i, env)
		}
	}
	for i, m := range got {
		whole, err := b.Store.GetResult(t.Context(), store.MemberReference(batchKey(batchOf(3, 9)), m.GetIndex()))
		if err != nil || whole.GetNode() != "n" || m.GetState() != "" && whole.GetState() != m.GetState() || m.GetState() == "" && whole.GetState() != "completed" {
			t.Errorf("the record says of member %d: %v, error %v", i, whole, err)
		}
	}
	attempts, err := logs.Attempts(t.Context(), b.Store, "r-1", "a[8]")
	if err != nil || len(attempts) != 1 {
		t.Fatalf("the logs of a[8]: %v, error %v", attempts, err)
	}
	if entries, _, _, err := logs.Read(t.Context(), b.Store, attempts[0], 0); err != nil || len(entries) != 1 || string(entries[0].GetData()) != "why" || entries[0].GetTask() != "a[8]" {
		t.Errorf("its log: %v, error %v", entries, err)
	}
}

// The time-out applies to each member separately.
func TestBatchTimeout(t *testing.T) {
	t.Parallel()
	req := batchOf(0, 1, 2)
	req.Timeout = durationpb.New(500 * time.Millisecond)
	testneeds.Await(t, "only the second member is out of time", func() bool { // on a busy machine, others may be, too
		b := newBench(t, steps(fake.Step{}, fake.Step{Block: true}, fake.Step{}))
		res := b.start(t.Context(), req).answer()
		want(t, res, "completed", "")
		return slices.Equal(ends(res.GetBatch()), []string{"0", "1 failed timeout", "2"})
	})
}

// When a batch ends early, its running member ends too, and the answer leaves out members that have not started.
func TestBatchEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end           func(b *bench)
		state, reason string
		want          []string
	}{
		"cancelled": {
			func(b *bench) {
				b.server.say(func(int, *historyv1.ExecuteProgress) error { return temporal.NewCanceledError() })
			},
			"cancelled", "cancelled", []string{"0", "1 cancelled cancelled"},
		},
		"drained": {func(b *bench) { b.BeginDrain(time.Now(), "") }, "moved", "draining", []string{"0"}},
		"drained later": {
			func(b *bench) { b.BeginDrain(time.Time{}, ""); b.fake.Release("a") }, "moved", "draining", []string{"0", "1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, steps(fake.Step{}, fake.Step{Block: true}, fake.Step{}))
			b.heartbeat, b.Timing.BeatInterval = time.Minute, time.Second
			e := b.start(t.Context(), batchOf(0, 1, 2))
			b.calls(2)
			test.end(b)
			res := e.answer()
			want(t, res, test.state, test.reason)
			wantEnds(t, res.GetBatch(), test.want...)
			if calls := len(b.fake.Calls()); calls != 2 {
				t.Errorf("%d members were started", calls)
			}
		})
	}
}

// calls waits until count members have started and one of them is running.
func (b *bench) calls(count int) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	if err := b.fake.Await(ctx, func(calls []fake.Call, running map[string]int) bool { return len(calls) == count && running["a"] == 1 }); err != nil {
		b.t.Fatalf("member %d does not run: %v", count, err)
	}
}

// The heartbeat names members that have ended, after they are in the record. If they do not fit, it names the record.
func TestBatchProgress(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int32{"inline": 1000, "by record": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, steps(fake.Step{Stdout: "hello"}, fake.Exit(1), fake.Step{Block: true}))
			req := batchOf(0, 1, 2)
			req.InlineLimit = limit
			e := b.start(t.Context(), req)
			var p *historyv1.ExecuteProgress
			testneeds.Await(t, "a beat tells of two members", func() bool {
				beats := b.server.heard()
				if len(beats) > 0 {
					p = beats[len(beats)-1]
				}
				return p.GetEnded() == 2
			})
			wantEnds(t, p.GetBatch(), "0 completed", "1 failed exit_code")
			if whole := p.GetBatch()[0].GetResult().GetStdout() == "hello"; whole != (limit == 1000) || !whole && p.GetBatch()[0].GetRecord() == "" {
				t.Errorf("the beat says %v", p)
			}
			if whole, err := b.Store.GetResult(t.Context(), batchKey(req)+"#0"); err != nil || whole.GetResult().GetStdout() != "hello" {
				t.Errorf("the record says %v, error %v", whole, err)
			}
			b.fake.Release("a")
			want(t, e.answer(), "completed", "")
		})
	}
}

// The record is ahead of the heartbeats, so the members in it need not run again.
func TestBatchRecordIsAhead(t *testing.T) {
	t.Parallel()
	b := newBench(t, steps(fake.Step{Stdout: "first"}, fake.Step{Block: true}))
	e := b.start(t.Context(), batchOf(0, 1))
	b.calls(2)
	testneeds.Await(t, "the record has the first member", func() bool {
		_, err := b.Store.GetResult(t.Context(), batchKey(batchOf(0, 1))+"#0")
		return err == nil
	})
	again := batchOf(0, 1)
	again.Claim, again.Batch[0].Unacknowledged, again.Batch[1].Unacknowledged = 2, []int32{0}, []int32{0}
	b.fake.Release("a")
	res := b.start(t.Context(), again).answer()
	want(t, res, "completed", "")
	if res.GetBatch()[0].GetResult().GetStdout() != "first" || len(b.fake.Calls()) > 3 {
		t.Errorf("got %v after %d calls", res.GetBatch(), len(b.fake.Calls()))
	}
	want(t, e.answer(), "completed", "")
}

// If there are many ended members, the heartbeat names only the record.
func TestBatchProgressIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	_, a := b.accept(t.Context(), delivery{activityRef: activityRef{heartbeat: time.Hour}}, batchOf(0, 1, 2))
	defer a.end()
	gathered := b.newBatch(a)
	for i := range int32(5000) {
		if err := gathered.add(t.Context(), &member{index: i}, &historyv1.ExecuteResponse{State: "completed", Result: &v1.TaskResult{}}, false); err != nil {
			t.Fatal(err)
		}
	}
	p := &historyv1.ExecuteProgress{}
	ended, ok := gathered.saveIfNew(t.Context())
	if gathered.putProgress(p, ended); !ok || p.GetEnded() != 5000 || p.GetRecord() == "" || len(p.GetBatch()) != 0 {
		t.Errorf("the beat says %v", p)
	}
	var record historyv1.ExecuteResponse
	if err := b.Store.GetMessage(t.Context(), p.GetRecord(), &record); err != nil || len(record.GetBatch()) != 5000 {
		t.Errorf("the record has %d members, error %v", len(record.GetBatch()), err)
	}
}

// Results of earlier batches and attempts that were never reported are reused.
func TestBatchAnswersTheUnheard(t *testing.T) {
	t.Parallel()
	b := newBench(t, steps(fake.Step{Stdout: "first"}))
	want(t, b.start(t.Context(), batchOf(1, 2, 3)).answer(), "completed", "")
	b.put("a[5]", 0, &historyv1.ExecuteResponse{State: "completed", Node: "other", Result: &v1.TaskResult{Stdout: "alone"}})
	b.put("a[6]", 0, &historyv1.ExecuteResponse{State: "failed", Node: "other", Result: &v1.TaskResult{ExitCode: 1}})
	req := batchOf(2, 3, 4, 5, 6)
	req.Claim = 7
	for _, m := range req.Batch {
		m.Claim, m.Attempt = 7, 1
		if m.Index != 3 {
			m.Unacknowledged = []int32{0}
		}
	}
	res := b.start(t.Context(), req).answer()
	want(t, res, "completed", "")
	wantEnds(t, res.GetBatch(), "2 completed", "3 completed", "4 completed", "5 completed", "6 completed")
	var ran []string
	for _, call := range b.fake.Calls()[3:] {
		ran = append(ran, call.Attempt.Env["SWITCHYARD_INDEX"])
	}
	if want := []string{"3", "4", "6"}; !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
	if res.GetBatch()[3].GetResult().GetStdout() != "alone" {
		t.Errorf("got %v", res.GetBatch())
	}
	// An instance that runs alone finds the result of its batch.
	alone := request("a")
	alone.Index, alone.Count, alone.Claim, alone.Unacknowledged = new(int32(1)), 100, 9, []int32{0}
	if res := b.start(t.Context(), alone).answer(); res.GetState() != "completed" || res.GetResult().GetStdout() != "first" || len(b.fake.Calls()) != 6 {
		t.Errorf("got %v after %d calls", res, len(b.fake.Calls()))
	}
}

// Large results are stored whole, in whichever record they are.
func TestBatchKeepsLargeResults(t *testing.T) {
	t.Parallel()
	sizes := []int{10, 3000, 40_000}
	var all []fake.Step
	for _, size := range sizes {
		all = append(all, fake.Step{Stdout: strings.Repeat("x", size), Output: "n=" + strings.Repeat("y", size)})
	}
	b := newBench(t, steps(all...))
	res := b.start(t.Context(), batchOf(0, 1, 2)).answer()
	for i, r := range res.GetBatch() {
		if inline := sizes[i] <= 10; inline != (r.GetRecord() == "") {
			t.Errorf("member %d has the record %q", i, r.GetRecord())
			continue
		} else if inline {
			continue
		}
		if got := len(r.GetResult().GetStdout()) + proto.Size(r.GetResult().GetOutput()); got > 1000 {
			t.Errorf("%d bytes of member %d travel", got, i)
		}
		whole, err := b.Store.GetResult(t.Context(), r.GetRecord())
		if err != nil || len(whole.GetResult().GetStdout()) != sizes[i] || len(whole.GetResult().GetOutput().GetFields()["n"].GetStringValue()) != sizes[i] {
			t.Errorf("the record %s of member %d is not whole: %v", r.GetRecord(), i, err)
		}
	}
}

// A batch ends early when its members return too much.
func TestBatchAnswerIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, steps(fake.Step{ContextUpdate: "k=" + strings.Repeat("v", 30_000)}))
	var indices []int32
	for i := range int32(40) {
		indices = append(indices, i)
	}
	res := b.start(t.Context(), batchOf(indices...)).answer()
	want(t, res, "completed", "")
	if n := len(res.GetBatch()); n < 10 || n > 25 || proto.Size(res) > 2*maxBatchAnswer {
		t.Errorf("%d members in %d bytes", n, proto.Size(res))
	}
}

// A fault of the node fails one member, and the others move to another node.
func TestBatchOnABrokenNode(t *testing.T) {
	t.Parallel()
	b := newBench(t, steps(fake.Step{}, fake.Step{Err: fmt.Errorf("the disk is full")}, fake.Step{}))
	res := b.start(t.Context(), batchOf(0, 1, 2)).answer()
	wantEnds(t, res.GetBatch(), "0", "1 failed system")
}

// An item comes with the request or from the stored list.
func TestItems(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	list := &historyv1.ItemList{}
	for i := range 10 {
		list.Items = append(list.Items, structpb.NewNumberValue(float64(i*i)))
	}
	if err := b.Store.PutMessage(t.Context(), "runs/r-1/items/a.0", list); err != nil {
		t.Fatal(err)
	}
	req := batchOf(2, 7)
	req.Items = "runs/r-1/items/a.0"
	want(t, b.start(t.Context(), req).answer(), "completed", "")
	one := request("a")
	one.Index, one.Count, one.Item = new(int32(4)), 10, structpb.NewStringValue("x y")
	want(t, b.start(t.Context(), one).answer(), "completed", "")
	for i, item := range []string{"4", "49", "x y"} {
		if got := b.fake.Calls()[i].Attempt.Env["SWITCHYARD_ITEM"]; got != item {
			t.Errorf("call %d has the item %q, want %q", i, got, item)
		}
	}
}
