package runlogs_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/logs"
	"switchyard/activities/store"
	"switchyard/activities/store/storetest"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// most is how long a follower waits for logs that arrive late.
const most = time.Minute

// done returns a completed task whose only attempt has printed something.
func done(claim int32) runview.TaskDelta {
	d := task("completed", 0, claim)
	d.Printer = &runview.Printer{Node: "n1"}
	return d
}

// expectMissing checks which logs have been reported, and whether everything has been sent.
func (w *follow) expectMissing(what string, isComplete bool, want ...*v1.MissingLog) {
	w.t.Helper()
	if !slices.EqualFunc(w.lost, want, func(a, b *v1.MissingLog) bool { return proto.Equal(a, b) }) || w.f.IsComplete() != isComplete {
		w.t.Errorf("%s: missing are %v, complete %t; want %v, %t", what, w.lost, w.f.IsComplete(), want, isComplete)
	}
}

// sendAfter sends what has arrived some time later.
func (w *follow) sendAfter(d time.Duration) {
	w.t.Helper()
	time.Sleep(d)
	w.send()
}

// late runs a test of a log that arrives after the end of its attempt, on a clock of its own.
func late(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, storetest.Open(t, "mem://")) })
}

func TestFollowerWaitsForTheEndOfALog(t *testing.T) {
	t.Parallel()
	for _, isRunFollowed := range []bool{false, true} {
		for _, hasBegun := range []bool{false, true} {
			late(t, func(t *testing.T, s *store.Store) {
				req := &v1.StreamRunLogsRequest{Task: "solo", Follow: true}
				if isRunFollowed {
					req.Task = ""
				}
				w := newFollow(t, s, req)
				w.update(task("running", 0, 1))
				var want []string
				if hasBegun {
					print(t, s, 1, 0, 1, "a", false)
					want = []string{"a"}
				}
				w.update(done(1))
				send := w.send
				if isRunFollowed {
					send = func() { w.sendAll() }
				}
				send()
				time.Sleep(most / 2)
				send()
				w.expect("before the end arrives", want...)
				w.expectMissing("before the end arrives", false)
				print(t, s, 1, 0, 1, "b", true)
				send()
				w.expect("after the end arrives", append(want, "b")...)
				w.expectMissing("after the end arrives", true)
			})
		}
	}
}

func TestFollowerReportsALogWhoseEndDoesNotArrive(t *testing.T) {
	t.Parallel()
	for _, hasBegun := range []bool{false, true} {
		late(t, func(t *testing.T, s *store.Store) {
			w := newFollow(t, s, &v1.StreamRunLogsRequest{Task: "solo", Follow: true})
			if hasBegun {
				print(t, s, 1, 0, 1, "a", false)
			}
			w.update(done(1))
			w.expectMissing("at the end", false)
			w.sendAfter(most)
			w.expectMissing("later", true, &v1.MissingLog{Task: "solo", Node: "n1", Partial: hasBegun})
		})
	}
}

// TestFollowerWaitsOnlyForOutputOfKnownResults checks that a stream does not wait for the logs of lost nodes and of silent
// tasks, which have no end.
func TestFollowerWaitsOnlyForOutputOfKnownResults(t *testing.T) {
	t.Parallel()
	late(t, func(t *testing.T, s *store.Store) {
		print(t, s, 1, 0, 1, "a", false)
		for _, state := range []string{"lost", "completed"} {
			w := newFollow(t, s, &v1.StreamRunLogsRequest{Task: "solo", Follow: true})
			w.update(task(state, 0, 1))
			w.expect(state, "a")
			w.expectMissing(state, true)
		}
	})
}

func TestResumedStreamDoesNotWaitForAnEndThatWasRead(t *testing.T) {
	t.Parallel()
	late(t, func(t *testing.T, s *store.Store) {
		print(t, s, 1, 0, 1, "a", true)
		_, next, ended, err := logs.Read(t.Context(), s, logs.Attempt{Run: "ci-0k", Generation: 1, Task: "solo", Claim: 1}, 0)
		if err != nil || !ended {
			t.Fatal(ended, err)
		}
		w := newFollow(t, s, &v1.StreamRunLogsRequest{Task: "solo", Follow: true, Resume: []*v1.LogPosition{{Task: "solo", Generation: 1, Claim: 1, Next: next}}})
		w.update(done(1))
		w.expect("resumed")
		w.expectMissing("resumed", true)
	})
}

// TestOutputOfARetryFollowsTheWholeLogOfTheAttemptBefore checks that the output of a failed attempt is complete before that of
// the next attempt begins.
func TestOutputOfARetryFollowsTheWholeLogOfTheAttemptBefore(t *testing.T) {
	t.Parallel()
	for _, arrives := range []bool{true, false} {
		late(t, func(t *testing.T, s *store.Store) {
			w := newFollow(t, s, &v1.StreamRunLogsRequest{Task: "solo", Follow: true})
			w.update(task("running", 0, 1))
			failed := &v1.Attempt{Claim: 1, Node: "n1"}
			print(t, s, 1, 1, 2, "retry", true)
			w.update(runview.TaskDelta{Name: "solo", Claim: 1, Task: &v1.Task{State: "queued", Attempt: 1}, Retried: failed})
			again := task("running", 1, 2)
			again.Retried = failed
			w.update(again)
			w.sendAfter(most / 2)
			w.expect("before the first log arrives")
			var want []string
			if arrives {
				print(t, s, 1, 0, 1, "first", true)
				want = []string{"first"}
			} else {
				time.Sleep(most / 2)
			}
			w.send()
			if want = append(want, "retry"); !slices.Equal(w.words, want) {
				t.Errorf("sent %q, want %q", w.words, want)
			}
			if arrives {
				w.expectMissing("later", false)
			} else {
				w.expectMissing("later", false, &v1.MissingLog{Task: "solo", Node: "n1"})
			}
		})
	}
}

// each returns a task in a state that has fanned out to 4 instances, which have all printed something.
func each(state string) runview.TaskDelta {
	d := solo("each", state)
	d.Task.Count, d.Printers = proto.Int32(4), map[int32]runview.Printer{}
	for i := range int32(4) {
		d.Instances = append(d.Instances, &v1.Instance{Index: i, State: state})
		if v1.IsTaskTerminal(state) {
			d.Printers[i] = runview.Printer{Node: "n1"}
		}
	}
	return d
}

func TestFollowerWaitsForTheLogsOfInstances(t *testing.T) {
	t.Parallel()
	late(t, func(t *testing.T, s *store.Store) {
		got := newFollow(t, s, &v1.StreamRunLogsRequest{Task: "each", Follow: true})
		send := func() {
			t.Helper()
			got.sendAfter(most / 8)
		}
		batch := logs.Attempt{Run: "ci-0k", Generation: 1, Task: "each[0-1]", Claim: 1}
		// A lost node has left a log without an end. Another batch has replaced it.
		w := logs.NewWriter(s, batch, logs.Options{})
		w.Begin("each[0]", 0, 1)
		_, _ = w.Stream(logs.Stdout).Write([]byte("lost"))
		if err := w.Suspend(t.Context()); err != nil {
			t.Fatal(err)
		}
		batch.Claim = 3
		w = logs.NewWriter(s, batch, logs.Options{})
		w.Begin("each[0]", 0, 3)
		_, _ = w.Stream(logs.Stdout).Write([]byte("first"))
		got.update(each("running"))
		send()
		got.update(each("completed"))
		send()
		if got.f.IsComplete() {
			t.Error("complete before the end of a log")
		}
		w.Begin("each[1]", 0, 3)
		_, _ = w.Stream(logs.Stdout).Write([]byte("second"))
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		send()
		if got.f.IsComplete() {
			t.Error("complete before a log")
		}
		write(t, s, printed{"each[2]", 1, 0, 4, nil})
		send()
		for !got.f.IsComplete() {
			send()
		}
		if !slices.Equal(got.missing(), []string{"each[3] a0 on n1"}) || !slices.Contains(got.text, "each[1] second") || !slices.Contains(got.text, "each[2] each[2] g1 a0") {
			t.Errorf("missing %q, sent %q", got.missing(), got.text)
		}
	})
}
