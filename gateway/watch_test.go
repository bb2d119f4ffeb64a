package gateway

import (
	"context"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// TestWatchersShareAPoller checks that many watchers of one run share a poller.
func TestWatchersShareAPoller(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "watched", "a", "b", "c", "d", "e", "f", "g")
	const watchers = 10
	watchings := make([]*watching, watchers)
	for i := range watchings {
		watchings[i] = f.watch(t, id)
		watchings[i].until(t, "the first message", func() bool { return len(watchings[i].run.GetTasks()) == 7 })
	}
	if f.pollers.CountStarted() != 1 {
		t.Fatalf("%d pollers were started", f.pollers.CountStarted())
	}
	set(t, id, "a", 1, &v1.Task{State: "assigned", Node: "n"})
	for _, w := range watchings {
		w.until(t, "a is assigned", func() bool { return w.run.GetTasks()["a"].GetState() == "assigned" })
		if w.run.GetTaskCounts()["pending"] != 6 || w.run.GetTaskCounts()["assigned"] != 1 {
			t.Errorf("the counts are %v", w.run.GetTaskCounts())
		}
	}
	set(t, id, "a", 1, &v1.Task{State: "failed", Reason: "exit_code", Node: "n", Result: &v1.TaskResult{ExitCode: 3, Stdout: "text"}})
	signal(t, id, setSignal, &historyv1.StatusResponse{Run: &v1.Run{Error: "a failed"}})
	signal(t, id, endSignal, "failed")
	var wg sync.WaitGroup
	for _, w := range watchings {
		wg.Go(func() {
			for w.next() {
			}
			if err := w.stream.Err(); err != nil {
				t.Errorf("the stream ended with %v", err)
			}
			if w.run.GetState() != "failed" || w.run.GetError() != "a failed" || w.run.GetReason() != "task_failed" {
				t.Errorf("the run ended as %v", w.run)
			}
			a := w.run.GetTasks()["a"]
			if a.GetState() != "failed" || a.GetResult().GetExitCode() != 3 || a.GetResult().GetStdout() != "" {
				t.Errorf("the task ended as %v", a)
			}
		})
	}
	wg.Wait()
	if f.pollers.CountStarted() != 1 {
		t.Errorf("%d pollers were started", f.pollers.CountStarted())
	}
	// A run that has ended is shown once.
	late := f.watch(t, id)
	for late.next() {
	}
	if late.sent != 1 || late.stream.Err() != nil || late.run.GetState() != "failed" || len(late.run.GetTasks()) != 7 {
		t.Errorf("%d messages, %v: %v", late.sent, late.stream.Err(), late.run)
	}
}

func TestPollerStopsWithItsLastWatcher(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "left-alone")
	first, second := f.watch(t, id), f.watch(t, id)
	first.next()
	second.next()
	first.close()
	set(t, id, "build", 1, &v1.Task{State: "assigned"})
	second.until(t, "the other continues", func() bool { return second.run.GetTasks()["build"].GetState() == "assigned" })
	second.close()
	eventually(t, "the poller has gone", func() bool {
		return f.pollers.CountOpen() == 0
	})
}

// TestTaskRunsOnceItsAttemptBeats checks that a task is running once its own attempt sends a heartbeat, and not because of
// another claim's heartbeat.
func TestTaskRunsOnceItsAttemptBeats(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "beats")
	set(t, id, "build", 2, &v1.Task{State: "assigned", Node: "n"})
	set(t, id, "test", 5, &v1.Task{State: "assigned", Node: "n"})
	w := f.watch(t, id)
	w.until(t, "both are assigned", func() bool { return w.run.GetTaskCounts()["assigned"] == 2 })
	started := timestamppb.Now()
	for _, ref := range []*historyv1.ClaimRef{{Task: "test", Claim: 4}, {Task: "build", Claim: 2}} {
		token := startAttempt(t, id, id, ref.GetTask(), ref.GetClaim())
		progress := &historyv1.ExecuteProgress{Spawned: true, StartedAt: started, Claim: ref.GetClaim()}
		if err := temporalClient.RecordActivityHeartbeat(t.Context(), token, progress); err != nil {
			t.Fatal(err)
		}
	}
	w.until(t, "build runs", func() bool { return w.run.GetTaskCounts()["running"] == 1 })
	build := w.run.GetTasks()["build"]
	if build.GetState() != "running" || build.GetStartedAt().AsTime() != started.AsTime() {
		t.Errorf("build is %v", build)
	}
	if run := f.get(t, id); run.GetTasks()["build"].GetState() != "running" || run.GetTasks()["test"].GetState() != "assigned" {
		t.Errorf("the run is %v", run)
	}
}

// TestWatchContinuesOverExecutions watches a run over several executions.
func TestWatchContinuesOverExecutions(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "goes-on")
	w := f.watch(t, id)
	for _, state := range []string{"queued", "assigned", "completed"} {
		set(t, id, "build", 1, &v1.Task{State: state})
		w.until(t, state, func() bool { return w.run.GetTasks()["build"].GetState() == state })
		signal(t, id, endSignal, "continued")
	}
	signal(t, id, endSignal, "completed")
	w.until(t, "the end", func() bool { return w.run.GetState() == "completed" })
	if w.run.GetTasks()["build"].GetState() != "completed" {
		t.Errorf("the run is %v", w.run)
	}
}

// TestWatchWaitsForAWorker checks that a watcher waits while no worker answers, and then continues. It stops the worker
// that all tests share.
func TestWatchWaitsForAWorker(t *testing.T) {
	f := start(t)
	id := f.submit(t, "away")
	w := f.watch(t, id)
	w.next()
	controlWorker.Stop()
	// The history of the run grows, so the poller has to query it.
	set(t, id, "build", 1, &v1.Task{State: "queued"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := f.client.GetRun(ctx, connect.NewRequest(&v1.GetRunRequest{Id: id}))
	wantCode(t, "get while no worker answers", err, connect.CodeDeadlineExceeded)
	controlWorker = startWorker()
	w.until(t, "the run continues", func() bool { return w.run.GetTasks()["build"].GetState() == "queued" })
}
