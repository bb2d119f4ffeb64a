package command

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/fanout"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// newState returns the state of a run whose tasks wait: "ask" for two admins, "build" and "vm" for a node, and both instances of
// "each" for their start. "vm" runs until it is stopped.
func newState(t *testing.T) *State {
	t.Helper()
	return newStateThatAsks(t, map[string]any{"message": "ship it?", "approvals": 2, "roles": []any{"admin"}})
}

// newStateThatAsks returns the same state with another spec of the task "ask".
func newStateThatAsks(t *testing.T, ask map[string]any) *State {
	t.Helper()
	spec, err := structpb.NewStruct(ask)
	if err != nil {
		t.Fatal(err)
	}
	in := &historyv1.RunInput{Definition: &v1.Definition{Name: "work", Tasks: map[string]*v1.TaskDefinition{
		"ask": {Type: v1.TypeApproval, Spec: spec}, "build": {Type: v1.TypeShell}, "late": {Type: v1.TypeShell, DependsOn: []string{"build"}},
		"each": {Type: v1.TypeShell, Parallel: structpb.NewNumberValue(2)}, "vm": {Type: v1.TypeVPS}, "call": {Type: v1.TypeRun},
	}}}
	graph, err := dag.NewGraph(in.Definition, nil)
	if err != nil {
		t.Fatal(err)
	}
	core, records := dag.New(graph), flight.NewRecords(nil)
	s := New(nil)
	s.Facts = Facts{
		Core: core, Records: records, Flight: flight.New(flight.Config{Input: in, Limits: limits.Run{}.WithDefaults()}, core, records),
		FanOuts: fanout.New(flight.Config{Input: in}, core, records, nil),
	}
	d := core.Start()
	each, _ := core.Index("each")
	for _, i := range append(d.Place, core.Apply(dag.Expanded{Task: each, Count: 2}).Place...) {
		s.Flight.Want(i)
	}
	s.carryOut(s.Flight.Admit(start))
	return s
}

// carryOut gives the core what the units in flight raise.
func (s *State) carryOut(effects []flight.Effect) {
	var events []dag.Event
	for _, effect := range effects {
		if e, ok := effect.(flight.Raise); ok {
			events = append(events, e.Event)
		}
	}
	s.Core.Apply(events...)
}

// dispatch gives a task a node, where its attempt runs.
func (s *State) dispatch(t *testing.T, task string) *flight.Unit {
	t.Helper()
	i, _ := s.Core.Index(task)
	req := s.Flight.PlaceRequest(false)
	s.carryOut(s.Flight.PlaceAnswered(req, &historyv1.PlaceResponse{Assigned: []*historyv1.Assignment{{Task: task, Claim: s.Core.Task(i).Claim, Node: "n"}}}, false))
	u := s.Flight.NextDispatch()
	if u == nil {
		t.Fatalf("%s has no attempt", task)
	}
	s.Flight.Dispatched(u)
	return u
}

// A command is refused with the reason, which names what can be done instead.
func TestCommandsAreRefusedWithAReason(t *testing.T) {
	t.Parallel()
	type may = func(*State, int, *historyv1.TaskCommand) *Refusal
	state := names.TaskStateError + ": "
	for name, test := range map[string]struct {
		task   string
		may    may
		before func(*testing.T, *State, int)
		want   string // "" if the command is carried out
	}{
		"unknown":         {task: "gone", may: (*State).mayHold, want: names.UnknownTaskError + `: task "gone": ` + dag.ErrUnknownTask.Error()},
		"cancelled":       {task: "build", may: (*State).mayHold, before: func(_ *testing.T, s *State, _ int) { s.IsCancelled = true }, want: state + "the run is being cancelled"},
		"ending":          {task: "build", may: (*State).mayHold, before: func(t *testing.T, s *State, _ int) { s.dispatch(t, "build"); s.Core.Apply(dag.Cancel{}) }, want: state + "the run is being ended"},
		"hold":            {task: "build", may: (*State).mayHold},
		"hold twice":      {task: "build", may: (*State).mayHold, before: func(_ *testing.T, s *State, i int) { s.Flight.Hold(i, "") }, want: state + "task build is already held"},
		"hold too late":   {task: "build", may: (*State).mayHold, before: func(t *testing.T, s *State, _ int) { s.dispatch(t, "build") }, want: state + "task build is assigned; only a task that has not started can be held: to stop it, cancel it"},
		"release":         {task: "build", may: (*State).mayRelease, want: state + "task build is not held"},
		"cancel":          {task: "build", may: (*State).mayCancel},
		"cancel too late": {task: "late", may: (*State).mayCancel, before: func(_ *testing.T, s *State, i int) { s.Core.Apply(dag.CancelTask{Task: i}) }, want: state + "task late is cancelled; it has ended"},
		"kill":            {task: "build", may: (*State).mayKill},
		"kill twice":      {task: "build", may: (*State).mayKill, before: func(t *testing.T, s *State, i int) { s.dispatch(t, "build"); s.Core.Apply(dag.Kill{Task: i}) }, want: state + "task build is already being killed"},

		"suspend":                 {task: "build", may: (*State).maySuspend, before: func(t *testing.T, s *State, _ int) { s.dispatch(t, "build") }},
		"suspend what waits":      {task: "build", may: (*State).maySuspend, want: state + "task build is not running (queued): hold it with `switchyard runs hold`"},
		"suspend twice":           {task: "build", may: (*State).maySuspend, before: func(t *testing.T, s *State, i int) { s.dispatch(t, "build"); s.Flight.Suspend(i, "by ann") }, want: state + "task build is already paused"},
		"suspend meanwhile":       {task: "build", may: (*State).maySuspend, before: func(t *testing.T, s *State, _ int) { s.Flight.Steered(s.dispatch(t, "build")) }, want: state + "another request about task build is under way; try again"},
		"suspend an approval":     {task: "ask", may: (*State).maySuspend, want: state + "task ask waits for approval and is not running"},
		"suspend a run":           {task: "call", may: (*State).maySuspend, want: state + "task call is a run of its own: pause or resume run "},
		"suspend a fan-out":       {task: "each", may: (*State).maySuspend, want: state + "task each is fanned out: name one of its instances, such as each[0]"},
		"suspend what is killed":  {task: "build", may: (*State).maySuspend, before: func(t *testing.T, s *State, i int) { s.dispatch(t, "build"); s.Core.Apply(dag.Kill{Task: i}) }, want: state + "task build is being killed"},
		"continue":                {task: "build", may: (*State).mayContinue, before: func(t *testing.T, s *State, i int) { s.dispatch(t, "build"); s.Flight.Suspend(i, "by ann") }},
		"continue when unsure":    {task: "build", may: (*State).mayContinue, before: func(t *testing.T, s *State, _ int) { s.Flight.SetUnsure(s.dispatch(t, "build"), true) }},
		"continue what runs":      {task: "build", may: (*State).mayContinue, before: func(t *testing.T, s *State, _ int) { s.dispatch(t, "build") }, want: state + "task build is assigned; it is not paused by a person"},
		"continue an approval":    {task: "ask", may: (*State).mayContinue, want: state + "task ask waits for approval; approve or reject it instead of resuming it"},
		"stop":                    {task: "vm", may: (*State).mayStop, before: func(t *testing.T, s *State, _ int) { s.dispatch(t, "vm") }},
		"stop what ends":          {task: "build", may: (*State).mayStop, want: state + "task build is of type shell, which ends by itself; stop is for tasks that run until they are stopped: cancel or kill it"},
		"stop too soon":           {task: "vm", may: (*State).mayStop, want: state + "task vm is not running (queued): cancel it"},
		"restart when suspended":  {task: "vm", may: (*State).mayRestart, before: func(t *testing.T, s *State, i int) { s.dispatch(t, "vm"); s.Flight.Suspend(i, "by ann") }, want: state + "task vm is paused: resume it first"},
		"stop what is away":       {task: "vm", may: (*State).mayStop, before: loseNode},
		"restart what is away":    {task: "vm", may: (*State).mayRestart, before: loseNode, want: state + "task vm is lost until node n is back; it can be stopped, cancelled or killed now"},
		"approve a shell task":    {task: "build", may: (*State).mayApprove, want: state + "task build is of type shell; only one of type approval can be approved or rejected"},
		"approve what has ended":  {task: "ask", may: (*State).mayApprove, before: func(_ *testing.T, s *State, i int) { s.Core.Apply(dag.CancelTask{Task: i}); s.carryOut(stopped(s, i)) }, want: state + "task ask is cancelled"},
		"approve without a login": {task: "ask", may: (*State).mayApprove},
	} {
		s := newState(t)
		i, _ := s.Core.Index(test.task)
		if test.before != nil {
			test.before(t, s, i)
		}
		got := ""
		if _, r := s.target(Update{may: test.may}, &historyv1.TaskCommand{Task: test.task}); r != nil {
			got = r.Kind + ": " + r.Error()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// loseNode lets the node of the task "vm" go silent.
func loseNode(t *testing.T, s *State, _ int) {
	s.carryOut(s.Flight.Answered(s.dispatch(t, "vm"), flight.Answer{
		Kind: flight.Silent, Response: &historyv1.ExecuteResponse{}, Beat: &historyv1.ExecuteProgress{Spawned: true},
	}, start))
}

// stopped stops a task, and returns the event of its end.
func stopped(s *State, i int) []flight.Effect {
	effects, _ := s.Flight.Stop(i)
	for _, effect := range effects {
		if e, ok := effect.(flight.Settle); ok {
			return []flight.Effect{flight.Raise{Event: e.End.Ended}}
		}
	}
	return nil
}

// A decision about a task counts of different people, who have one of the roles that it names.
func TestDecisionsAboutATask(t *testing.T) {
	t.Parallel()
	s := newState(t)
	i, _ := s.Core.Index("ask")
	by := func(who, role string) *historyv1.TaskCommand {
		return &historyv1.TaskCommand{By: who, Decision: &historyv1.Decision{By: who, Role: role}}
	}
	if r := s.mayReject(i, by("ann", "user")); r == nil || r.Kind != names.NotAllowedError || !strings.HasSuffix(r.Error(), "ann has the role user") {
		t.Errorf("a user decides: %v", r)
	}
	if r := s.mayApprove(i, by("ann", "admin")); r != nil {
		t.Errorf("an admin does not decide: %v", r)
	}
	s.Flight.Approve(i, by("ann", "admin"), start)
	if r := s.mayApprove(i, by("ann", "admin")); r == nil || !strings.Contains(r.Error(), "another person must approve it") {
		t.Errorf("ann approves twice: %v", r)
	}
	if r := s.mayReject(i, by("ann", "admin")); r != nil {
		t.Errorf("ann may no longer reject: %v", r)
	}
}

// Approvers are people with one of the roles or names, and not the submitter if that is excluded.
func TestApproversDecide(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	both := object{"roles": []any{"operator"}, "names": []any{"uma"}}
	for name, test := range map[string]struct {
		approvers object
		by        *historyv1.Decision // nil if people do not log in
		want      string              // "" if the decision counts
	}{
		"anyone":                         {by: &historyv1.Decision{By: "eve", Role: "user"}},
		"a role":                         {both, &historyv1.Decision{By: "op", Role: "admin"}, ""},
		"a name":                         {both, &historyv1.Decision{By: "uma", Role: "user"}, ""},
		"neither":                        {both, &historyv1.Decision{By: "eve", Role: "user"}, "task ask requires a decision by the role operator or uma; eve has the role user"},
		"another name":                   {object{"names": []any{"uma", "bob"}}, &historyv1.Decision{By: "op", Role: "admin"}, "task ask requires a decision by uma or bob; op has the role admin"},
		"without a login":                {object{"roles": []any{"operator"}, "not": "submitter"}, nil, ""},
		"the submitter":                  {object{"not": "submitter"}, &historyv1.Decision{By: "ann", Role: "admin"}, "ann submitted the run; another person must decide about task ask"},
		"the submitter, by its gateway":  {object{"not": "submitter"}, &historyv1.Decision{By: "al", Role: "admin", IsSubmitter: true}, "al submitted the run; another person must decide about task ask"},
		"the submitter, who may":         {object{"names": []any{"ann"}}, &historyv1.Decision{By: "ann", Role: "user", IsSubmitter: true}, ""},
		"another one than the submitter": {object{"not": "submitter"}, &historyv1.Decision{By: "bob", Role: "user"}, ""},
	} {
		spec := object{}
		if test.approvers != nil {
			spec["approvers"] = test.approvers
		}
		s := newStateThatAsks(t, spec)
		s.SubmittedBy = "ann"
		i, _ := s.Core.Index("ask")
		for _, may := range []func(int, *historyv1.TaskCommand) *Refusal{s.mayApprove, s.mayReject} {
			got := ""
			if r := may(i, &historyv1.TaskCommand{By: test.by.GetBy(), Decision: test.by}); r != nil {
				if got = r.Error(); r.Kind != names.NotAllowedError {
					t.Errorf("%s: %s", name, r.Kind)
				}
			}
			if got != test.want {
				t.Errorf("%s: %q, want %q", name, got, test.want)
			}
		}
	}
}

// The first of two approvers fills the inputs in, and the second one approves the same values.
func TestApproversFillInInputs(t *testing.T) {
	t.Parallel()
	s := newStateThatAsks(t, map[string]any{"approvals": 2, "inputs": map[string]any{
		"region": map[string]any{"enum": []any{"eu", "us"}, "required": true}, "canary": map[string]any{"type": "boolean", "default": true},
	}})
	i, _ := s.Core.Index("ask")
	approve := Update{Name: names.ApproveUpdate, Verdict: v1.ApprovalApproved, may: (*State).mayApprove}
	for _, test := range []struct {
		by    string
		input map[string]any
		want  string // "" if the approval counts
	}{
		{"ann", nil, "input region is missing"},
		{"ann", map[string]any{"region": "mars"}, "it must be eu or us"},
		{"ann", map[string]any{"region": "eu", "canary": "no"}, "it must be true or false"},
		{"ann", map[string]any{"region": "eu", "regoin": "us"}, "did you mean region?"},
		{"ann", map[string]any{"region": "eu"}, ""},
		{"bob", map[string]any{"canary": false}, "ann has approved it with canary=true, region=eu; approve the same"},
		{"bob", map[string]any{"region": "eu"}, ""},
	} {
		input, _ := structpb.NewStruct(test.input)
		command := &historyv1.TaskCommand{Task: "ask", Decision: &historyv1.Decision{By: test.by, Input: input}}
		effects, _, refused := s.Do(approve, command, start)
		if test.want != "" && (refused == nil || refused.Kind != names.InvalidInputError || !strings.Contains(refused.Error(), test.want)) {
			t.Errorf("%s with %v: %v, want %q", test.by, test.input, refused, test.want)
		}
		if test.want == "" && refused != nil {
			t.Errorf("%s with %v: %v", test.by, test.input, refused)
		}
		for _, effect := range effects {
			for _, flown := range effect.(Fly).Effects {
				if e, ok := flown.(flight.Settle); ok {
					output := e.End.Response.GetResult().GetOutput().AsMap()
					if output["region"] != "eu" || output["canary"] != true || output["by"] != "bob" {
						t.Errorf("the output is %v", output)
					}
					i = -1
				}
			}
		}
	}
	if i >= 0 {
		t.Error("two approvals do not end the task")
	}
}

// A run is paused and resumed once, decided about by another person than its submitter, and has dead letters to retry.
func TestCommandsForTheRun(t *testing.T) {
	t.Parallel()
	s := newState(t)
	if s.mayPause(0, nil) != nil || s.mayResume(0, nil) == nil {
		t.Error("a run that is not paused cannot be paused, or is resumed")
	}
	s.Flight.Pause()
	if s.mayPause(0, nil) == nil || s.mayResume(0, nil) != nil {
		t.Error("a paused run is paused again, or cannot be resumed")
	}
	decision := &historyv1.TaskCommand{Decision: &historyv1.Decision{By: "ann"}}
	if r := s.mayDecideRun(0, decision); r == nil || r.Error() != "the run is not waiting for approval" {
		t.Errorf("it needs no approval: %v", r)
	}
	s.Approval, s.SubmittedBy = &v1.RunApproval{State: v1.ApprovalPending}, "ann"
	if r := s.mayDecideRun(0, decision); r == nil || r.Kind != names.NotAllowedError {
		t.Errorf("ann decides about her own run: %v", r)
	}
	if s.SubmittedBy = "bob"; s.mayDecideRun(0, decision) != nil {
		t.Error("ann does not decide about the run of bob")
	}
	s.Approval = &v1.RunApproval{State: v1.ApprovalRejected, By: "eve", At: timestamppb.New(start)}
	if r := s.mayDecideRun(0, decision); r == nil || r.Error() != "the run was rejected by eve at 2026-11-01T12:00:00Z" {
		t.Errorf("eve has decided: %v", r)
	}
	for name, want := range map[string]error{"gone": dag.ErrUnknownTask, "build": dag.ErrNotDeadLetter} {
		if r := s.mayRetry(0, &historyv1.TaskCommand{Task: name}); !errors.Is(r, want) {
			t.Errorf("retry %s: %v", name, r)
		}
	}
	if s.IsCancelled = true; !errors.Is(s.mayRetry(0, &historyv1.TaskCommand{Task: "build"}), dag.ErrCancelled) {
		t.Error("a cancelled run takes a retry")
	}
}
