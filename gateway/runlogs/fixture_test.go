package runlogs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/logs"
	"switchyard/activities/store"
	"switchyard/gateway/runlogs"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// delta returns a delta of a run whose newest generation is 1.
func delta(tasks ...runview.TaskDelta) runview.Delta {
	return runview.Delta{Run: &v1.Run{Id: "ci-0k", Generation: 1}, Home: "ci-0k", Tasks: tasks}
}

func task(state string, attempt, claim int32) runview.TaskDelta {
	return runview.TaskDelta{Name: "solo", Claim: claim, Task: &v1.Task{State: state, Attempt: attempt, AssignedAt: timestamppb.Now()}}
}

// solo returns the state of a task whose only attempt was dispatched once.
func solo(name, state string) runview.TaskDelta {
	d := task(state, 0, 1)
	d.Name = name
	return d
}

// printed is the output of one dispatch: a line "<instance> g<generation> a<attempt>" for each of its instances, or
// for its task.
type printed struct {
	task                       string
	generation, attempt, claim int32
	instances                  []int
}

func write(t *testing.T, s *store.Store, all ...printed) {
	t.Helper()
	for _, p := range all {
		w := logs.NewWriter(s, logs.Attempt{Run: "ci-0k", Generation: p.generation, Task: p.task, Attempt: p.attempt, Claim: p.claim}, logs.Options{})
		say := func(name string) {
			if _, err := fmt.Fprintf(w.Stream(logs.Stdout), "%s g%d a%d\n", name, p.generation, p.attempt); err != nil {
				t.Fatal(err)
			}
		}
		for _, i := range p.instances {
			name := fmt.Sprintf("each[%d]", i)
			w.Begin(name, p.attempt, p.claim)
			say(name)
		}
		if p.instances == nil {
			say(p.task)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// print appends a word to the log of a dispatch of task solo, and ends the log if isLast is set.
func print(t *testing.T, s *store.Store, generation, attempt, claim int32, word string, isLast bool) {
	t.Helper()
	printTo(t, s, logs.Attempt{Run: "ci-0k", Generation: generation, Task: "solo", Attempt: attempt, Claim: claim}, word, isLast)
}

// printTo appends a word to the log of a dispatch, and ends the log if isLast is set.
func printTo(t *testing.T, s *store.Store, a logs.Attempt, word string, isLast bool) {
	t.Helper()
	w, err := logs.Resume(t.Context(), s, a, logs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// What is written from the start to the position of the newest word is in the log already.
	for _, text := range []string{w.Position(), word + " "} {
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

// follow is a log stream of a run, with what it has sent.
type follow struct {
	t         *testing.T
	f         *runlogs.Follower
	words     []string
	lines     []string
	text      []string // "<task> <text>" of each entry
	lost      []*v1.MissingLog
	positions map[string]*v1.LogPosition
}

func newFollow(t *testing.T, s *store.Store, req *v1.StreamRunLogsRequest) *follow {
	w := &follow{t: t, positions: map[string]*v1.LogPosition{}}
	w.f = runlogs.New("ci-0k", s, req, func(m *v1.StreamRunLogsResponse) error {
		for _, e := range m.GetEntries() {
			data := strings.TrimSpace(string(e.GetData()))
			w.words = append(w.words, strings.Fields(data)...)
			w.lines = append(w.lines, strings.Split(data, "\n")...)
			w.text = append(w.text, e.GetTask()+" "+data)
		}
		if p := m.GetPosition(); p != nil {
			w.positions[p.GetTask()] = p
		}
		if m.GetMissing() != nil {
			w.lost = append(w.lost, m.GetMissing())
		}
		return nil
	})
	return w
}

// update reports new states of tasks and sends the new entries.
func (w *follow) update(changed ...runview.TaskDelta) {
	w.t.Helper()
	if err := w.f.Update(w.t.Context(), delta(changed...)); err != nil {
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

// sendAll reports the end of the run, and sends all entries.
func (w *follow) sendAll(changed ...runview.TaskDelta) *follow {
	w.t.Helper()
	if err := w.f.SendAll(w.t.Context(), delta(changed...)); err != nil {
		w.t.Fatal(err)
	}
	return w
}

func (w *follow) expect(what string, want ...string) {
	w.t.Helper()
	if !slices.Equal(w.words, want) || len(w.lost) > 0 {
		w.t.Fatalf("%s: sent %q, missing %v, want %q", what, w.words, w.lost, want)
	}
}

// missing returns "<task> a<attempt> on <node>" for each missing log, sorted.
func (w *follow) missing() (texts []string) {
	for _, m := range w.lost {
		texts = append(texts, fmt.Sprintf("%s a%d on %s", m.GetTask(), m.GetAttempt(), m.GetNode()))
	}
	slices.Sort(texts)
	return texts
}
