package runlogs_test

import (
	"slices"
	"strings"
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

// pass lets time pass.
func pass(d time.Duration) step { return func(*follow, *store.Store) { time.Sleep(d) } }

// sendAll reports the end of the run, and sends all entries.
func sendAll(w *follow, _ *store.Store) { w.t.Helper(); w.sendAll() }

// reports checks the words that have been sent, the logs that have been reported as missing, and whether that is everything.
func reports(isComplete bool, words []string, missing ...*v1.MissingLog) step {
	return func(w *follow, _ *store.Store) {
		w.t.Helper()
		if !slices.Equal(w.words, words) || !slices.EqualFunc(w.lost, missing, func(a, b *v1.MissingLog) bool { return proto.Equal(a, b) }) || w.f.IsComplete() != isComplete {
			w.t.Errorf("sent %q, missing %v, complete %t; want %q, %v, %t", w.words, w.lost, w.f.IsComplete(), words, missing, isComplete)
		}
	}
}

// TestFollowerWaitsForLogsThatArriveLate follows a task, or its run, whose log arrives after the end of its attempt. It does not wait
// for the logs of lost nodes and of silent tasks, which have no end. The output of a failed attempt is complete before that of the
// next attempt begins.
func TestFollowerWaitsForLogsThatArriveLate(t *testing.T) {
	t.Parallel()
	failed, again := &v1.Attempt{Claim: 1, Node: "n1"}, task("running", 1, 2)
	again.Retried = failed
	retry := []step{
		on(task("running", 0, 1)), ends(1, 2, "retry"), on(runview.TaskDelta{Name: "solo", Claim: 1, Task: &v1.Task{State: "queued", Attempt: 1}, Retried: failed}),
		on(again), pass(most / 2), send, sees(),
	}
	tests := map[string][]step{
		"an end that does not arrive": {on(done(1)), complete(false), pass(most), send, reports(true, nil, &v1.MissingLog{Task: "solo", Node: "n1"})},
		"an end that does not arrive after a part": {
			says(0, 1, "a"), on(done(1)), complete(false), pass(most), send, reports(true, []string{"a"}, &v1.MissingLog{Task: "solo", Node: "n1", Partial: true}),
		},
		"the log of a lost node":                {says(0, 1, "a"), on(task("lost", 0, 1)), reports(true, []string{"a"})},
		"the log of a silent task":              {says(0, 1, "a"), on(task("completed", 0, 1)), reports(true, []string{"a"})},
		"the first log arrives after the retry": slices.Concat(retry, []step{ends(0, 1, "first"), send, reports(false, []string{"first", "retry"})}),
		"the first log does not arrive":         slices.Concat(retry, []step{pass(most / 2), send, reports(false, []string{"retry"}, &v1.MissingLog{Task: "solo", Node: "n1"})}),
	}
	for what, deliver := range map[string]step{"": send, " of the run": sendAll} {
		tests["an end that arrives"+what] = []step{
			on(task("running", 0, 1)), on(done(1)), deliver, pass(most / 2), deliver, reports(false, nil), ends(0, 1, "b"), deliver, reports(true, []string{"b"}),
		}
		tests["an end that arrives after a part"+what] = []step{
			on(task("running", 0, 1)), says(0, 1, "a"), on(done(1)), deliver, pass(most / 2), deliver, reports(false, []string{"a"}), ends(0, 1, "b"), deliver, reports(true, []string{"a", "b"}),
		}
	}
	for name, steps := range tests {
		synctest.Test(t, func(t *testing.T) {
			s, req := storetest.Open(t, "mem://"), &v1.StreamRunLogsRequest{Task: "solo", Follow: true}
			if strings.HasSuffix(name, "of the run") {
				req.Task = ""
			}
			w := newFollow(t, s, req)
			for _, step := range steps {
				step(w, s)
			}
			if t.Failed() {
				t.Log(name)
			}
		})
	}
}

func TestResumedStreamDoesNotWaitForAnEndThatWasRead(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "mem://")
	print(t, s, 1, 0, 1, "a", true)
	_, next, ended, err := logs.Read(t.Context(), s, logs.Attempt{Run: "ci-0k", Generation: 1, Task: "solo", Claim: 1}, 0)
	if err != nil || !ended {
		t.Fatal(ended, err)
	}
	w := newFollow(t, s, &v1.StreamRunLogsRequest{Task: "solo", Follow: true, Resume: []*v1.LogPosition{{Task: "solo", Generation: 1, Claim: 1, Next: next}}})
	w.update(done(1))
	reports(true, nil)(w, s)
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
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, "mem://")
		got := newFollow(t, s, &v1.StreamRunLogsRequest{Task: "each", Follow: true})
		send := func() {
			t.Helper()
			time.Sleep(most / 8)
			got.send()
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
