package command

import (
	"fmt"
	"strings"
	"testing"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/names"
)

// textOf returns what effects do, with the names of tasks.
func (s *State) textOf(effects []Effect) string {
	var words []string
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	for _, effect := range effects {
		switch e := effect.(type) {
		case Fly:
			for _, inner := range e.Effects {
				switch e := inner.(type) {
				case flight.Raise:
					switch event := e.Event.(type) {
					case dag.CancelTask:
						add("cancel %s (%s)", s.Core.Name(event.Task), event.Reason)
					case dag.Kill:
						add("kill %s (%s)", s.Core.Name(event.Task), event.Reason)
					case dag.Retry:
						add("retry %s", s.Core.Name(event.Task))
					case dag.Abort:
						add("end as %s (%s)", event.State, event.Error)
					case dag.Cancel:
						add("cancel (%s)", event.Error)
					}
				case flight.LogCommand:
					add("log %s %s by %s", s.Core.Name(e.Task), e.Event, e.Command.GetBy())
				case flight.Wake:
					add("wake")
				}
			}
		case ShowPausedBy:
			add("show %q", e.Text)
		case ShowSteeredBy:
			add("show %s by %s", s.Core.Name(e.Task), e.Who)
		case ShowApproval:
			add("show %s by %s", e.Approval.GetState(), e.Approval.GetBy())
		case LogRun:
			add("log %s by %s", e.Event, e.Command.GetBy())
		}
	}
	return strings.Join(words, ", ")
}

// update returns the update with a name.
func update(t *testing.T, name string) Update {
	t.Helper()
	for _, u := range Updates {
		if u.Name == name {
			return u
		}
	}
	t.Fatalf("no update is called %s", name)
	return Update{}
}

// do carries out the command of ann for a task, and returns what it does, what its node is asked for, or why it is refused.
func (s *State) do(t *testing.T, name, task, reason string) string {
	t.Helper()
	effects, steer, refused := s.Do(update(t, name), &historyv1.TaskCommand{Task: task, By: "ann", Reason: reason}, start)
	switch {
	case refused != nil:
		return refused.Error()
	case steer != nil:
		return "ask " + steer.Node + " to " + steer.Action
	}
	return s.textOf(effects)
}

// Each command shows or logs who has sent it. One that ends a task tells the core so.
func TestCommandsAreCarriedOut(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		update, task, reason string
		before               func(*testing.T, *State)
		want                 string
	}{
		"pause":             {update: names.PauseUpdate, reason: "lunch", want: `log paused by ann, show "paused by ann: lunch"`},
		"resume":            {update: names.ResumeUpdate, before: func(_ *testing.T, s *State) { s.SetPaused(true, nil) }, want: `show "", log resumed by ann`},
		"hold":              {update: names.HoldUpdate, task: "build", want: "log build held by ann"},
		"release":           {update: names.ReleaseUpdate, task: "build", before: func(t *testing.T, s *State) { s.do(t, names.HoldUpdate, "build", "") }, want: "log build released by ann"},
		"cancel":            {update: names.CancelTaskUpdate, task: "build", reason: "slow", want: "show build by ann, cancel build (cancelled by ann: slow)"},
		"kill":              {update: names.KillTaskUpdate, task: "build", want: "show build by ann, kill build (killed by ann)"},
		"retry too soon":    {update: names.RetryUpdate, task: "build", want: `task "build" is queued: only a dead letter can be retried`},
		"approve":           {update: names.ApproveUpdate, task: "ask", want: "log ask approved by ann"},
		"reject":            {update: names.RejectUpdate, task: "ask", want: "log ask rejected by ann"},
		"approve the run":   {update: names.ApproveRunUpdate, before: awaitApproval, want: "show approved by ann, log approved by ann, wake"},
		"reject the run":    {update: names.RejectRunUpdate, reason: "no", before: awaitApproval, want: "show rejected by ann, end as rejected (rejected by ann: no)"},
		"suspend":           {update: names.PauseTaskUpdate, task: "build", before: func(t *testing.T, s *State) { s.dispatch(t, "build") }, want: "ask n to pause"},
		"stop":              {update: names.StopTaskUpdate, task: "vm", before: func(t *testing.T, s *State) { s.dispatch(t, "vm") }, want: "ask n to stop"},
		"stop what is away": {update: names.StopTaskUpdate, task: "vm", before: func(t *testing.T, s *State) { loseNode(t, s, 0) }, want: "show vm by ann"},
	} {
		s := newState(t)
		if test.before != nil {
			test.before(t, s)
		}
		if got := s.do(t, test.update, test.task, test.reason); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// awaitApproval makes the run wait for an approval.
func awaitApproval(_ *testing.T, s *State) {
	s.Flight.Input.NeedsApproval = true
	s.RequestApproval()
}

// A dead letter is requeued.
func TestDeadLetterIsRetried(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.deadLetter(t, "build")
	if got := s.do(t, names.RetryUpdate, "build", ""); got != "show build by ann, retry build" {
		t.Error(got)
	}
}

// A run requests its approval once for each version of its definition. Partitions and later executions request none.
func TestApprovalIsRequestedOnceForEachDefinition(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in     *historyv1.RunInput
		before *v1.RunApproval
		want   bool
	}{
		"needs none":                      {in: &historyv1.RunInput{}},
		"needs one":                       {in: &historyv1.RunInput{NeedsApproval: true}, want: true},
		"partition":                       {in: &historyv1.RunInput{NeedsApproval: true, Partition: &historyv1.Partition{}}},
		"continued":                       {in: &historyv1.RunInput{NeedsApproval: true, State: &historyv1.RunState{}}},
		"approved":                        {in: &historyv1.RunInput{NeedsApproval: true, DefinitionVersion: 1}, before: &v1.RunApproval{State: v1.ApprovalApproved, DefinitionVersion: 1}},
		"another version approved":        {in: &historyv1.RunInput{NeedsApproval: true, DefinitionVersion: 2}, before: &v1.RunApproval{State: v1.ApprovalApproved, DefinitionVersion: 1}, want: true},
		"rejected in a generation before": {in: &historyv1.RunInput{NeedsApproval: true}, before: &v1.RunApproval{State: v1.ApprovalRejected}, want: true},
		"cancelled while it waited":       {in: &historyv1.RunInput{}, before: &v1.RunApproval{State: v1.ApprovalPending}},
	} {
		s := newState(t)
		s.Flight.Input, s.Approval = test.in, test.before
		if got := s.RequestApproval(); got != test.want || s.AwaitsApproval() != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A node's answer decides whether a command counts. Without an answer, it is unknown whether the attempt is suspended.
func TestAnswersOfNodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		update, task string
		meanwhile    func(*State, int)
		answer       SteerAnswer
		want         string
		isUnsure     bool
	}{
		"suspended":            {update: names.PauseTaskUpdate, want: "log vm paused by ann"},
		"stopped":              {update: names.StopTaskUpdate, want: "show vm by ann"},
		"restarted":            {update: names.RestartTaskUpdate, want: "log vm restarted by ann"},
		"refused":              {update: names.PauseTaskUpdate, answer: SteerAnswer{Refused: "it waits in its batch"}, want: "task vm: it waits in its batch"},
		"failed":               {update: names.PauseTaskUpdate, answer: SteerAnswer{IsFailed: true, Cause: "no cgroup"}, want: "node n could not pause task vm: no cgroup", isUnsure: true},
		"silent":               {update: names.PauseTaskUpdate, answer: SteerAnswer{IsFailed: true}, want: "node n did not answer in time; it may yet pause task vm", isUnsure: true},
		"silent about a stop":  {update: names.StopTaskUpdate, answer: SteerAnswer{IsFailed: true}, want: "node n did not answer in time; it may yet stop task vm"},
		"ended before a pause": {update: names.PauseTaskUpdate, meanwhile: endAttempt, want: "the attempt of task vm has just ended"},
		"ended before a stop":  {update: names.StopTaskUpdate, meanwhile: endAttempt, want: ""},
	} {
		s := newState(t)
		u := s.dispatch(t, "vm")
		_, steer, refused := s.Do(update(t, test.update), &historyv1.TaskCommand{Task: "vm", By: "ann"}, start)
		if refused != nil || steer == nil || s.Flight.IsQuiet() || !u.IsSteered() {
			t.Fatalf("%s: %v, %v", name, steer, refused)
		}
		if test.meanwhile != nil {
			test.meanwhile(s, u.Lead)
		}
		effects, refused := s.SteeringAnswered(steer, test.answer, start)
		got := s.textOf(effects)
		if refused != nil {
			got = refused.Error()
		}
		if got != test.want || u.IsUnsure() != test.isUnsure || u.IsSteered() {
			t.Errorf("%s: %q, want %q; unsure: %v", name, got, test.want, u.IsUnsure())
		}
	}
}

// endAttempt ends the attempt of a task for good.
func endAttempt(s *State, i int) {
	u := s.Flight.AttemptOf(i)
	for _, effect := range s.Flight.Answered(u, flight.Answer{Response: &historyv1.ExecuteResponse{State: v1.TaskCompleted, Result: &v1.TaskResult{}}, Beat: &historyv1.ExecuteProgress{}}, start) {
		if e, ok := effect.(flight.Settle); ok {
			s.carryOut(s.Flight.Settled(e.End, ""))
		}
	}
}

// A decision that is signed for something else does not count.
func TestMisdirectedDecisions(t *testing.T) {
	t.Parallel()
	meant := &historyv1.Decision{Workflow: "run", Execution: "first", Task: "ask", Verdict: v1.ApprovalApproved}
	for want, d := range map[string]*historyv1.Decision{
		"": {Workflow: "run", Execution: "first", Task: "ask", Verdict: v1.ApprovalApproved, By: "ann"},
		"it was not sent through a gateway; use `switchyard runs approve` or `reject`": nil,
		"it was signed for another task or run":                                        {Workflow: "run", Execution: "first", Verdict: v1.ApprovalApproved},
		"it was signed for another generation of the run":                              {Workflow: "run", Execution: "second", Task: "ask", Verdict: v1.ApprovalApproved},
		"it was signed as rejected":                                                    {Workflow: "run", Execution: "first", Task: "ask", Verdict: v1.ApprovalRejected},
	} {
		if got := Misdirected(d, meant); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	// What a signed decision says counts, and not what the command around it says.
	c := update(t, names.ApproveUpdate).meant(&historyv1.TaskCommand{Task: "ask", By: "eve", Reason: "why not", Decision: &historyv1.Decision{By: "ann", Reason: "seen"}})
	if c.GetTask() != "ask" || c.GetBy() != "ann" || c.GetReason() != "seen" || c.GetDecision() == nil {
		t.Errorf("the command is %v", c)
	}
}
