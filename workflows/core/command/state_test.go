package command

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/fanout"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/limits"
)

// A signal cancels the run unless it names a task or may mean something else.
func TestReadCancel(t *testing.T) {
	t.Parallel()
	const unreadable = `the argument of the signal is neither a reason nor {"reason": "..."}`
	for name, test := range map[string]struct {
		data, encoding   string
		by, why, refusal string
	}{
		"nothing":               {encoding: "binary/null"},
		"null":                  {data: "null", encoding: encodingJSON},
		"a reason":              {data: `"enough\nreally"`, encoding: encodingJSON, why: "cancelled: enough"},
		"a number":              {data: "42", encoding: encodingJSON},
		"bytes":                 {data: "enough", encoding: "binary/plain"},
		"an object":             {data: ` {"reason": "enough"}`, encoding: encodingJSON, why: "cancelled: enough"},
		"a command":             {data: `{"reason": "enough", "by": "ann"}`, encoding: encodingProtoJSON, by: "ann", why: "cancelled by ann: enough"},
		"a person":              {data: `{"by": "ann"}`, encoding: encodingProtoJSON, by: "ann", why: "cancelled by ann"},
		"a newer command":       {data: `{"by": "ann", "force": true}`, encoding: encodingProtoJSON, by: "ann", why: "cancelled by ann"},
		"an object of a person": {data: `{"tasks": "a"}`, encoding: encodingJSON, refusal: unreadable},
		"another type":          {data: `{"task": 42}`, encoding: encodingProtoJSON, refusal: unreadable},
		"a task":                {data: `{"task": "a", "by": "eve"}`, encoding: encodingJSON, by: "eve", refusal: "signals cannot cancel a task; use `switchyard runs cancel RUN TASK`"},
	} {
		c, refusal := ReadCancel([]byte(test.data), test.encoding)
		if c.GetBy() != test.by || c.GetReason() != test.why || refusal != test.refusal {
			t.Errorf("%s: by %q, %q, refused: %q", name, c.GetBy(), c.GetReason(), refusal)
		}
	}
}

// A cancellation ends finally only as the second one of the run, once finally has begun.
func TestWhichCancellationsEndFinally(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, during []string // request IDs
		abort          bool     // the run has missed its deadline
		ends           bool     // the last one ends finally
		ok             bool
	}{
		"the first":                   {nil, []string{"1"}, false, false, false},
		"the first, repeated":         {nil, []string{"1", "1"}, false, false, true},
		"the second":                  {nil, []string{"1", "2"}, false, true, true},
		"an earlier one again":        {[]string{"1", "2"}, []string{"1"}, false, false, true},
		"another one":                 {[]string{"1"}, []string{"2"}, false, true, true},
		"without an ID":               {[]string{"1"}, []string{"", ""}, false, false, false},
		"after one without an ID":     {[]string{""}, []string{"1"}, false, true, true},
		"the first after a deadline":  {nil, []string{"1"}, true, false, false},
		"the second after a deadline": {nil, []string{"1", "2"}, true, true, true},
	} {
		s := withFinally(t)
		for _, id := range c.before {
			s.Cancel(Cancellation{RequestID: id})
		}
		switch {
		case c.abort:
			s.Core.Apply(dag.Abort{State: v1.RunFailed, Reason: v1.ReasonDeadline})
		case c.before != nil:
			s.Core.Apply(dag.Cancel{})
		default:
			s.Core.Apply(dag.CancelTask{Task: 0})
		}
		var carried historyv1.RunState
		s.Save(&carried)
		s.Restore(&carried)
		var effects []Effect
		var ok bool
		for _, id := range c.during {
			if len(effects) > 0 || !s.Core.InFinally() {
				t.Fatalf("%s: finally has not begun, or has ended early", name)
			}
			effects, ok = s.Cancel(Cancellation{RequestID: id})
		}
		if ends := len(effects) > 0; ends != c.ends || ok != c.ok {
			t.Errorf("%s: ends finally: %v, ok: %v", name, ends, ok)
		}
	}
}

// TestFirstCancellationEndsAPauseOfFinally checks that a paused run does what is left of finally once it is cancelled.
func TestFirstCancellationEndsAPauseOfFinally(t *testing.T) {
	t.Parallel()
	s := withFinally(t)
	s.Core.Apply(dag.CancelTask{Task: 0})
	s.SetPaused(true, &historyv1.TaskCommand{})
	if s.Cancel(Cancellation{RequestID: "1", By: "ann"}); s.Flight.IsPaused() {
		t.Error("the run is still paused")
	}
	s.SetPaused(true, &historyv1.TaskCommand{})
	if s.Cancel(Cancellation{RequestID: "1", By: "ann"}); !s.Flight.IsPaused() {
		t.Error("a repeated request ends a later pause")
	}
}

// withFinally returns the state of a run of one task, and one in finally, that has begun.
func withFinally(t *testing.T) *State {
	t.Helper()
	in := &historyv1.RunInput{Definition: &v1.Definition{
		Name: "work", Tasks: map[string]*v1.TaskDefinition{"build": {Type: v1.TypeShell}}, Finally: map[string]*v1.TaskDefinition{"tidy": {Type: v1.TypeShell}},
	}}
	graph, err := dag.NewGraph(in.GetDefinition(), nil)
	if err != nil {
		t.Fatal(err)
	}
	core, records := dag.New(graph), flight.NewRecords(nil)
	f := flight.New(flight.Config{Input: in, Limits: limits.Run{}.WithDefaults()}, core, records)
	s := New(nil)
	s.Facts = Facts{Core: core, Records: records, Flight: f, FanOuts: fanout.New(flight.Config{Input: in}, core, records, nil)}
	core.Start()
	return s
}

// The first cancellation counts, and the next execution knows who has sent it and what else was decided.
func TestNextExecutionKnowsWhatPeopleHaveAsked(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.Approval, s.SubmittedBy = &v1.RunApproval{State: v1.ApprovalApproved, By: "bob"}, "eve"
	var effects []Effect
	for _, c := range []Cancellation{{By: "ann", Reason: "cancelled by ann: wrong branch", RequestID: "1"}, {By: "bob", Reason: "cancelled by bob", RequestID: "2"}} {
		some, ok := s.Cancel(c)
		if effects = append(effects, some...); !ok {
			t.Errorf("%v is refused", c)
		}
	}
	if got := s.textOf(effects); got != "cancel (cancelled by ann: wrong branch)" || s.CancelledBy != "ann" {
		t.Errorf("%s; cancelled by %q", got, s.CancelledBy)
	}
	s.Core.Apply(dag.Cancel{})
	s.AddCarriedOut("update")
	var carried historyv1.RunState
	s.Save(&carried)
	next := New(carried.GetCarriedOut())
	next.Facts = s.Facts
	next.Restore(&carried)
	if !next.IsCancelled || next.CancelledBy != "ann" || !next.HasCarriedOut("update") || strings.Join(next.cancelIDs, " ") != "1 2" || next.SubmittedBy != "eve" || !proto.Equal(next.Approval, s.Approval) {
		t.Errorf("the next execution has %+v", next)
	}
}

// A run knows its newest updates when they are repeated.
func TestNewestUpdatesAreRecognized(t *testing.T) {
	t.Parallel()
	s := New([]string{"before"})
	for i := range maxCarriedOut {
		if !s.HasCarriedOut("before") {
			t.Fatalf("after %d updates, the first is forgotten", i)
		}
		s.AddCarriedOut(fmt.Sprint(i))
	}
	if s.HasCarriedOut("before") || !s.HasCarriedOut("0") || len(s.carriedOut) != maxCarriedOut {
		t.Errorf("it knows %v", s.carriedOut)
	}
}

// The state of an open run says what it waits for: first of all for people.
func TestOpenState(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before *v1.RunApproval
		paused bool
		slot   *historyv1.Granted
		ends   []string // tasks that are cancelled before
		want   string
	}{
		"running":                         {want: v1.RunRunning},
		"before its approval":             {before: &v1.RunApproval{State: v1.ApprovalPending}, paused: true, want: v1.RunPendingApproval},
		"approved":                        {before: &v1.RunApproval{State: v1.ApprovalApproved}, want: v1.RunRunning},
		"paused":                          {paused: true, ends: []string{"build", "each", "vm", "call"}, want: v1.RunPaused},
		"without a run slot":              {slot: &historyv1.Granted{Claim: "run", Holders: []string{"other"}}, want: v1.RunPending},
		"only approvals are under way":    {ends: []string{"build", "each", "vm", "call"}, want: v1.RunPendingApproval},
		"another task is under way still": {ends: []string{"build", "each", "call"}, want: v1.RunRunning},
	} {
		s := newState(t)
		s.Approval = test.before
		for _, task := range test.ends {
			i, _ := s.Core.Index(task)
			for _, stopped := range s.Core.Apply(dag.CancelTask{Task: i}).Stop {
				s.Core.Apply(dag.Ended{Task: stopped, Claim: s.Core.Task(stopped).Claim, State: v1.TaskCancelled})
			}
		}
		s.Flight.Input.Definition.Concurrency = &v1.RunConcurrency{MaxRuns: 1}
		if test.slot != nil {
			s.Flight.Granted(test.slot, start)
		}
		if test.paused {
			s.Flight.Pause()
		}
		if got := s.OpenState(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// deadLetter lets attempts of a task fail until it is a dead letter, and returns the task.
func (s *State) deadLetter(t *testing.T, task string) int {
	t.Helper()
	i, _ := s.Core.Index(task)
	for range 10 {
		claim := s.Core.Task(i).Claim
		s.Core.Apply(dag.Placed{Task: i, Claim: claim, Node: "n"})
		s.Core.Apply(dag.Ended{Task: i, Claim: claim, State: v1.TaskFailed, ExitCode: 1})
		s.Core.Apply(dag.BackoffOver{Task: i, Claim: claim})
	}
	if state := s.Core.Task(i).State; state != v1.TaskDeadLetter {
		t.Fatalf("%s is %s", task, state)
	}
	return i
}

// The dead letters of partitions count like those of the run itself.
func TestDeadLettersOfPartitionsCount(t *testing.T) {
	t.Parallel()
	s := newState(t)
	i := s.deadLetter(t, "build")
	before := &historyv1.TaskState{
		Task: &v1.Task{Counts: map[string]int32{v1.TaskDeadLetter: 3}}, Partitions: []*historyv1.PartitionReport{{Over: true}},
	}
	s.FanOuts.Restore(i, before)
	s.Records.Restore(i, before, true)
	if got := s.DeadLetters(); got != 4 {
		t.Errorf("%d dead letters, want 4", got)
	}
}
