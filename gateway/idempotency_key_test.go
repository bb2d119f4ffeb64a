package gateway

import (
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// TestIdempotencyKeyStartsOneRun submits the same request and others under one key, while the run is open and after its
// end.
func TestIdempotencyKeyStartsOneRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	input, _ := structpb.NewStruct(map[string]any{"b": 1, "a": []any{"x", true}})
	other, _ := structpb.NewStruct(map[string]any{"a": []any{"x", false}, "b": 1})
	submit := func(document string, input *structpb.Struct, key string) (*v1.SubmitRunResponse, error) {
		res, err := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{
			Source: &v1.SubmitRunRequest_Document{Document: document}, Input: input, IdempotencyKey: key,
		}))
		if err != nil {
			return nil, err
		}
		return res.Msg, nil
	}
	first, err := submit(document("keyed", "a"), input, "k")
	if err != nil || first.GetExisted() || !strings.HasPrefix(first.GetId(), "keyed-") {
		t.Fatalf("got %v, %v", first, err)
	}
	check := func(when string) {
		t.Helper()
		// The same definition in another notation.
		same := "tasks: { a: { spec: { command: 'true' }, type: shell } }\nname: keyed\n"
		if got, err := submit(same, input, "k"); err != nil || !got.GetExisted() || got.GetId() != first.GetId() {
			t.Errorf("%s, the same: %v, %v", when, got, err)
		}
		_, err := submit(document("keyed", "b"), input, "k")
		wantCode(t, when+", another definition", err, connect.CodeAlreadyExists)
		if err == nil || !strings.Contains(err.Error(), first.GetId()) {
			t.Errorf("%s: the error does not name the run: %v", when, err)
		}
		_, err = submit(document("renamed", "a"), input, "k")
		wantCode(t, when+", another workflow", err, connect.CodeAlreadyExists)
		if err == nil || !strings.Contains(err.Error(), first.GetId()) {
			t.Errorf("%s: the error does not name the run: %v", when, err)
		}
		_, err = submit(document("keyed", "a"), other, "k")
		wantCode(t, when+", another input", err, connect.CodeAlreadyExists)
	}
	check("open")
	before, err := f.reader.Describe(t.Context(), first.GetId())
	if err != nil {
		t.Fatal(err)
	}
	signal(t, first.GetId(), endSignal, "continued")
	eventually(t, "it continues in another execution", func() bool {
		now, err := f.reader.Describe(t.Context(), first.GetId())
		return err == nil && now.GetWorkflowExecutionInfo().GetExecution().GetRunId() != before.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	})
	check("continued")
	end(t, first.GetId(), "failed")
	check("ended")
	if _, err := f.retryRun(t, first.GetId()); err != nil {
		t.Fatal(err)
	}
	check("again")
	end(t, first.GetId(), "completed")

	second, err := submit(document("keyed", "a"), input, "k2")
	if err != nil || second.GetExisted() || second.GetId() == first.GetId() {
		t.Errorf("another key: %v, %v", second, err)
	}
	end(t, second.GetId(), "completed")

	// A key of a run that never started may be claimed again, but not at once.
	claim := func(age time.Duration) {
		t.Helper()
		note := "gone-12345678 " + time.Now().Add(-age).UTC().Format(time.RFC3339Nano)
		if err := f.config.Store.Put(t.Context(), storekey.Request("k3"), []byte(note)); err != nil {
			t.Fatal(err)
		}
	}
	claim(0)
	_, err = submit(document("keyed-too", "a"), input, "k3")
	wantCode(t, "a claim that is fresh", err, connect.CodeAlreadyExists)
	claim(2 * time.Minute)
	elsewhere, err := submit(document("keyed-too", "a"), input, "k3")
	if err != nil || elsewhere.GetExisted() {
		t.Fatalf("an old claim of a run that is not there: %v, %v", elsewhere, err)
	}
	end(t, elsewhere.GetId(), "completed")
}

// TestConcurrentSubmitsWithOneKeyStartOneRun submits the same request concurrently from many callers; exactly one starts the run.
func TestConcurrentSubmitsWithOneKeyStartOneRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	var mu sync.Mutex
	var wg sync.WaitGroup
	fresh, ids := 0, map[string]bool{}
	for range 8 {
		wg.Go(func() {
			res, err := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{
				Source: &v1.SubmitRunRequest_Document{Document: document("hurried", "a")}, IdempotencyKey: "now",
			}))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			ids[res.Msg.GetId()] = true
			if !res.Msg.GetExisted() {
				fresh++
			}
		})
	}
	wg.Wait()
	if fresh != 1 || len(ids) != 1 {
		t.Errorf("%d were first, of %v", fresh, ids)
	}
	for id := range ids {
		end(t, id, "completed")
	}
}
