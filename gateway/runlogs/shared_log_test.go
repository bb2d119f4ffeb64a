package runlogs_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/logs"
	"switchyard/activities/store"
	"switchyard/gateway/runlogs"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// follow is a log stream of a run with one task.
type follow struct {
	t    *testing.T
	f    *runlogs.Follower
	got  []string
	lost []*v1.MissingLog
}

func newFollow(t *testing.T, s *store.Store, req *v1.StreamRunLogsRequest) *follow {
	w := &follow{t: t}
	w.f = runlogs.New("ci-0k", s, req, func(m *v1.StreamRunLogsResponse) error {
		for _, e := range m.GetEntries() {
			w.got = append(w.got, strings.Fields(string(e.GetData()))...)
		}
		if m.GetMissing() != nil {
			w.lost = append(w.lost, m.GetMissing())
		}
		return nil
	})
	return w
}

// update reports a new state of the task and sends the new entries.
func (w *follow) update(changed runview.TaskDelta) {
	w.t.Helper()
	if err := w.f.Update(w.t.Context(), delta(changed)); err != nil {
		w.t.Fatal(err)
	}
	w.send()
}

func (w *follow) send() {
	w.t.Helper()
	if err := w.f.SendNew(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *follow) expect(what string, want ...string) {
	w.t.Helper()
	if !slices.Equal(w.got, want) || len(w.lost) > 0 {
		w.t.Fatalf("%s: sent %q, missing %v, want %q", what, w.got, w.lost, want)
	}
}

// job returns a task that runs outside of the nodes. If it has ended, it has printed something.
func job(state string, attempt, claim int32) runview.TaskDelta {
	d := task(state, attempt, claim)
	d.Task.Type = v1.TypeK8sJob
	if v1.IsTaskTerminal(state) {
		d.Printer = &runview.Printer{Attempt: attempt, Recorded: true, Generation: 1}
	}
	return d
}

// print appends a word to the log of a dispatch of task solo, and ends the log if isLast is set.
func print(t *testing.T, s *store.Store, generation, attempt, claim int32, word string, isLast bool) {
	t.Helper()
	a := logs.Attempt{Run: "ci-0k", Generation: generation, Task: "solo", Attempt: attempt, Claim: claim}
	w, err := logs.Resume(t.Context(), s, a, logs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := w.Position() // position of the newest word
	for _, text := range []string{before, word + " "} {
		w.Mark(text)
		if _, err := w.Stream(logs.Stdout).Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	end := w.Suspend
	if isLast {
		end = w.Close
	}
	if err := end(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestFollowerKeepsToTheLogThatDispatchesShare(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	w := newFollow(t, s, &v1.StreamRunLogsRequest{Task: "solo"})
	w.update(job("running", 0, 1))
	print(t, s, 1, 0, 1, "a", false)
	w.send()
	w.update(job("queued", 0, 2))
	w.update(job("running", 0, 2))
	w.expect("dispatched again", "a")
	print(t, s, 1, 0, 1, "b", false)
	w.send()
	w.expect("continued", "a", "b")
	w.update(job("running", 0, 3))
	w.update(job("running", 0, 4))
	print(t, s, 1, 0, 1, "c", true)
	w.send()
	w.expect("ended", "a", "b", "c")
	w.update(job("completed", 0, 4))
	w.expect("completed", "a", "b", "c")
	if !w.f.IsComplete() {
		t.Error("not complete")
	}
}

func TestLogWithoutEndIsCompleteWhenItsTaskHasEnded(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	w := newFollow(t, s, &v1.StreamRunLogsRequest{Task: "solo"})
	w.update(job("running", 0, 1))
	print(t, s, 1, 0, 1, "a", false)
	w.update(job("running", 0, 2))
	if w.f.IsComplete() {
		t.Error("complete too early")
	}
	w.update(job("failed", 0, 2))
	w.expect("failed", "a")
	if !w.f.IsComplete() {
		t.Error("not complete")
	}
}

func TestSharedLogIsThatOfTheFirstDispatchThatPrints(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	w := newFollow(t, s, &v1.StreamRunLogsRequest{})
	w.update(job("running", 0, 1))
	w.update(job("running", 0, 2))
	print(t, s, 1, 0, 2, "a", false)
	w.send()
	w.update(job("running", 0, 3))
	print(t, s, 1, 0, 2, "b", false)
	w.send()
	w.expect("continued", "a", "b")
	w.update(job("failed", 0, 3))
	w.update(job("running", 1, 4))
	print(t, s, 1, 1, 4, "c", false)
	w.update(job("running", 1, 5))
	w.send()
	w.expect("tried again", "a", "b", "c")
}

func TestStreamThatBeginsAfterADispatchFindsTheSharedLog(t *testing.T) {
	t.Parallel()
	s := openStore(t)
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

// The attempt and generation numbers are the same as before.
func TestTaskThatIsPutBackHasALogOfItsOwn(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	w := newFollow(t, s, &v1.StreamRunLogsRequest{})
	w.update(job("running", 0, 1))
	print(t, s, 1, 0, 1, "a", true)
	w.send()
	w.update(job("dead_letter", 0, 1))
	for claim := int32(2); claim < 4; claim++ { // the first dispatch prints nothing
		w.update(job("queued", 0, claim))
		w.update(job("running", 0, claim))
	}
	print(t, s, 1, 0, 3, "b", false)
	w.send()
	w.expect("put back", "a", "b")
	w.update(job("running", 0, 4))
	print(t, s, 1, 0, 3, "c", true)
	w.send()
	w.expect("put back and dispatched again", "a", "b", "c")
	w.update(job("completed", 0, 4))
	w.expect("completed", "a", "b", "c")
}

func TestSharedLogIsKeptWithItsTask(t *testing.T) {
	t.Parallel()
	s := openStore(t)
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

// Each dispatch of a task that runs on nodes has its own log.
func TestFollowerAwaitsTheLogOfTheNextDispatchOfATaskOnNodes(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	w := newFollow(t, s, &v1.StreamRunLogsRequest{})
	w.update(task("running", 0, 1))
	print(t, s, 1, 0, 1, "a", false)
	w.send()
	w.update(task("running", 0, 2))
	print(t, s, 1, 0, 1, "lost", false)
	print(t, s, 1, 0, 2, "b", false)
	w.send()
	w.expect("dispatched again", "a", "b")
}

// TestLogOfATaskThatIsAwayIsFollowed checks that a machine whose node is away is followed until the machine
// has ended.
func TestLogOfATaskThatIsAwayIsFollowed(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	w := newFollow(t, s, &v1.StreamRunLogsRequest{Task: "solo", Follow: true})
	machine := func(state, notice string) runview.TaskDelta {
		d := task(state, 0, 1)
		d.Task.Type, d.Task.Notice = v1.TypeVPS, notice
		return d
	}
	print(t, s, 0, 0, 1, "before", false)
	w.update(machine(v1.TaskRunning, ""))
	w.update(machine(v1.TaskLost, "its node is silent"))
	if w.f.IsComplete() {
		t.Error("the log is complete while the node is away")
	}
	print(t, s, 0, 0, 1, "after", true)
	w.update(machine(v1.TaskRunning, ""))
	w.expect("after the node is back", "before", "after")
	w.update(machine(v1.TaskLost, ""))
	if !w.f.IsComplete() {
		t.Error("the log is not complete although the task has ended")
	}
}
