package runlogs_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/store"
	"switchyard/activities/store/storetest"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// job returns a task that runs outside of the nodes. If it has ended, it has printed something.
func job(state string, attempt, claim int32) runview.TaskDelta {
	d := task(state, attempt, claim)
	d.Task.Type = v1.TypeK8sJob
	if v1.IsTaskTerminal(state) {
		d.Printer = &runview.Printer{Attempt: attempt, Recorded: true, Generation: 1}
	}
	return d
}

// step is a step of a test of a stream.
type step func(w *follow, s *store.Store)

// on reports a new state of the task.
func on(changed runview.TaskDelta) step { return func(w *follow, _ *store.Store) { w.update(changed) } }

// says makes a dispatch print a word. ends makes it print its last word.
func says(attempt, claim int32, word string) step {
	return func(w *follow, s *store.Store) { w.t.Helper(); print(w.t, s, 1, attempt, claim, word, false) }
}

func ends(attempt, claim int32, word string) step {
	return func(w *follow, s *store.Store) { w.t.Helper(); print(w.t, s, 1, attempt, claim, word, true) }
}

// send sends what has arrived.
func send(w *follow, _ *store.Store) { w.send() }

// sees checks what the stream has sent.
func sees(words ...string) step {
	return func(w *follow, _ *store.Store) { w.t.Helper(); w.expect("the stream", words...) }
}

// complete checks whether the stream knows that everything has been sent.
func complete(want bool) step {
	return func(w *follow, _ *store.Store) {
		w.t.Helper()
		if w.f.IsComplete() != want {
			w.t.Errorf("complete: %t, want %t, after %q", !want, want, w.words)
		}
	}
}

// TestFollowerReadsTheLogsOfDispatches follows the only task of a run. Dispatches of a task that runs outside of the nodes share a
// log, which is that of the first dispatch that prints.
func TestFollowerReadsTheLogsOfDispatches(t *testing.T) {
	t.Parallel()
	machine := func(state, notice string) runview.TaskDelta {
		d := task(state, 0, 1)
		d.Task.Type, d.Task.Notice = v1.TypeVPS, notice
		return d
	}
	for name, steps := range map[string][]step{
		"a log that dispatches share": {
			on(job("running", 0, 1)), says(0, 1, "a"), send, on(job("queued", 0, 2)), on(job("running", 0, 2)), sees("a"), says(0, 1, "b"), send, sees("a", "b"),
			on(job("running", 0, 3)), on(job("running", 0, 4)), ends(0, 1, "c"), send, sees("a", "b", "c"), on(job("completed", 0, 4)), sees("a", "b", "c"), complete(true),
		},
		"a log without an end": {on(job("running", 0, 1)), says(0, 1, "a"), on(job("running", 0, 2)), complete(false), on(job("failed", 0, 2)), sees("a"), complete(true)},
		"a first dispatch that prints nothing": {
			on(job("running", 0, 1)), on(job("running", 0, 2)), says(0, 2, "a"), send, on(job("running", 0, 3)), says(0, 2, "b"), send, sees("a", "b"),
			on(job("failed", 0, 3)), on(job("running", 1, 4)), says(1, 4, "c"), on(job("running", 1, 5)), send, sees("a", "b", "c"),
		},
		// The attempt and generation numbers are the same as before, and the first dispatch prints nothing.
		"a task that is put back": {
			on(job("running", 0, 1)), ends(0, 1, "a"), send, on(job("dead_letter", 0, 1)), on(job("queued", 0, 2)), on(job("running", 0, 2)), on(job("queued", 0, 3)), on(job("running", 0, 3)),
			says(0, 3, "b"), send, sees("a", "b"), on(job("running", 0, 4)), ends(0, 3, "c"), send, sees("a", "b", "c"), on(job("completed", 0, 4)), sees("a", "b", "c"),
		},
		// Each dispatch of a task that runs on nodes has its own log.
		"a task on nodes": {on(task("running", 0, 1)), says(0, 1, "a"), send, on(task("running", 0, 2)), says(0, 1, "lost"), says(0, 2, "b"), send, sees("a", "b")},
		// A machine whose node is away is followed until the machine has ended.
		"a machine that is away": {
			says(0, 1, "before"), on(machine(v1.TaskRunning, "")), on(machine(v1.TaskLost, "its node is silent")), complete(false), ends(0, 1, "after"),
			on(machine(v1.TaskRunning, "")), sees("before", "after"), on(machine(v1.TaskLost, "")), complete(true),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, "mem://")
			w := newFollow(t, s, &v1.StreamRunLogsRequest{Task: "solo", Follow: name == "a machine that is away"})
			for _, step := range steps {
				step(w, s)
			}
		})
	}
}

func TestStreamThatBeginsAfterADispatchFindsTheSharedLog(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "mem://")
	print(t, s, 1, 0, 1, "a", false)
	print(t, s, 1, 0, 1, "b", false)
	w := newFollow(t, s, &v1.StreamRunLogsRequest{})
	w.update(job("running", 0, 2))
	w.expect("from the start", "a", "b")
	resumed := newFollow(t, s, &v1.StreamRunLogsRequest{Resume: []*v1.LogPosition{{Task: "solo", Generation: 1, Claim: 1, Next: 1}}})
	resumed.update(job("running", 0, 2))
	resumed.expect("resumed", "b")
	for _, attempt := range []int32{0, 1} {
		only := newFollow(t, s, &v1.StreamRunLogsRequest{Attempt: proto.Int32(attempt)})
		only.update(job("running", 0, 2))
		only.expect("of an attempt", []string{"a", "b"}[:2-2*attempt]...)
	}
	print(t, s, 1, 0, 1, "c", true)
	for _, f := range []*follow{w, resumed} {
		f.send()
		f.update(job("completed", 0, 2))
	}
	w.expect("to the end", "a", "b", "c")
	resumed.expect("resumed, to the end", "b", "c")
}

func TestSharedLogIsKeptWithItsTask(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "mem://")
	print(t, s, 0, 0, 1, "a", true)
	for _, isRecorded := range []bool{true, false} {
		kept := job("completed", 0, 2)
		kept.Printer = &runview.Printer{Recorded: isRecorded}
		w := newFollow(t, s, &v1.StreamRunLogsRequest{})
		w.update(kept)
		w.expect("kept", "a")
	}
	silent := job("completed", 0, 4)
	silent.Printer = nil
	for _, changed := range []runview.TaskDelta{job("queued", 0, 3), job("running", 0, 3), silent} {
		w := newFollow(t, s, &v1.StreamRunLogsRequest{})
		w.update(changed)
		w.expect("run again, " + changed.Task.GetState())
	}
}
