package dataflow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/fanout"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// start is when the runs of the tests start.
var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// begin returns the state of a run that has begun. Its input has the definition.
func begin(t *testing.T, in *historyv1.RunInput) *State {
	t.Helper()
	in.Definition.Name = "work"
	graph, err := dag.NewGraph(in.GetDefinition(), in.GetReferences())
	if err != nil {
		t.Fatal(err)
	}
	c := flight.Config{Input: in, RunID: "run", Chain: "chain", Home: "home", First: "first", Limits: limits.Run{}.WithDefaults()}
	core, records := dag.New(graph), flight.NewRecords(nil)
	commands := command.New(nil)
	commands.Facts = command.Facts{Core: core, Records: records, Flight: flight.New(c, core, records), FanOuts: fanout.New(c, core, records, in.Definition.Context)}
	core.Start()
	return New(c, graph, commands)
}

// happen gives the core events.
func (s *State) happen(events ...dag.Event) {
	for _, i := range s.core.Apply(events...).Changed {
		s.records.Changed(i, s.core.Task(i), false, i < s.graph.Len() && s.graph.FansOut(i))
	}
}

// end ends the attempt of a task with an output.
func (s *State) end(name, state string, output *structpb.Struct) {
	i, _ := s.core.Index(name)
	claim := s.core.Task(i).Claim
	s.happen(dag.Placed{Task: i, Claim: claim, Node: "n"}, dag.Ended{Task: i, Claim: claim, State: state, Error: state})
	s.records.At(i).SetResult(&historyv1.ExecuteResponse{Result: &v1.TaskResult{Output: output}})
}

// object returns an object with a text of some size.
func object(size int) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{"text": structpb.NewStringValue(strings.Repeat("x", size))}}
}

// ended returns a run in which only the last task has not ended. A task that fans out and two others are its parents.
func ended(t *testing.T, size int) *State {
	t.Helper()
	s := begin(t, &historyv1.RunInput{
		Input: object(size),
		Definition: &v1.Definition{Context: object(size), Tasks: map[string]*v1.TaskDefinition{
			"each":  {Type: v1.TypeShell, Parallel: structpb.NewNumberValue(2)},
			"other": {Type: v1.TypeShell},
			"stage": {Type: v1.TypeShell, Parallel: structpb.NewNumberValue(2)},
			"last":  {Type: v1.TypeShell, DependsOn: []string{"each", "other", "stage"}, Env: map[string]string{"A": "${{ parent.each.count }}"}, Parallel: structpb.NewNumberValue(2)},
		}},
		References: map[string]*historyv1.ConditionReferences{"last": {Templates: []string{"each", "other"}}},
	})
	for _, name := range []string{"each", "stage"} {
		i, _ := s.core.Index(name)
		s.happen(dag.Expanded{Task: i, Count: 2})
		s.end(name+"[0]", v1.TaskCompleted, object(3))
		s.end(name+"[1]", v1.TaskCompleted, nil)
	}
	s.end("other", v1.TaskCompleted, object(size))
	last, _ := s.core.Index("last")
	s.happen(dag.Expanded{Task: last, Count: 2})
	return s
}

// request builds the request for an instance of the last task, and returns the calls that it made. fails holds the errors of calls
// by their activities.
func (s *State) request(number int, fails map[string]error) (*historyv1.ExecuteRequest, string) {
	i, _ := s.core.Index(names.InstanceName("last", number))
	var calls []string
	for d := s.Draft(); ; {
		req, call := d.ExecuteRequest(&flight.Unit{Lead: i, Members: []int{i}}, start)
		if call == nil {
			return req, strings.Join(calls, ", ")
		}
		calls = append(calls, call.Summary)
		switch answer := call.Answer.(type) {
		case *string:
			*answer = "key"
		case *historyv1.FanOutView:
			answer.Outputs = &historyv1.Items{Key: "outputs"}
		}
		d.Answered(call, fails[call.Activity])
	}
}

// A request carries what is small, and refers to what is large and was stored for all requests. Without the store it carries all.
func TestExecuteRequest(t *testing.T) {
	t.Parallel()
	all := "store its context, store its input, collect the outputs of each, collect the outputs of stage"
	away := errors.New("no store")
	for name, test := range map[string]struct {
		size        int
		fails       map[string]error
		calls, want string
		again       string // calls for the next instance
	}{
		"small": {
			size: 10, calls: "collect the outputs of each, collect the outputs of stage",
			want: "context=value input=value parents=3 views=2 each=outputs ancestors=",
		},
		"large": {
			size: 20 << 10, calls: all + ", store the outputs of the ancestors of last",
			want: "context=key input=key parents=0 views=0 each= ancestors=key",
		},
		"objects cannot be stored": {
			size: 5 << 10, fails: map[string]error{names.SaveSharedActivity: away}, calls: all,
			want: "context=value input=value parents=3 views=2 each=outputs ancestors=",
		},
		"ancestors cannot be stored": {
			size: 20 << 10, fails: map[string]error{names.SaveAncestorsActivity: away}, calls: all + ", store the outputs of the ancestors of last",
			want: "context=key input=key parents=3 views=2 each=outputs ancestors=", again: "store the outputs of the ancestors of last",
		},
		"outputs cannot be collected": {
			size: 10, fails: map[string]error{names.CollectActivity: away}, calls: "collect the outputs of each, collect the outputs of stage",
			want: "context=value input=value parents=3 views=2 each=no store ancestors=",
		},
	} {
		s := ended(t, test.size)
		req, calls := s.request(0, test.fails)
		if calls != test.calls {
			t.Errorf("%s: calls %s, want %s", name, calls, test.calls)
		}
		form := func(s *historyv1.Shared) string {
			if s.GetValue() != nil {
				return "value"
			}
			return s.GetKey()
		}
		each := ""
		if len(req.GetParents()) > 0 {
			each = cmp.Or(req.GetParents()[0].GetFanOut().GetError(), req.GetParents()[0].GetFanOut().GetOutputs().GetKey())
		}
		got := fmt.Sprintf("context=%s input=%s parents=%d views=%d each=%s ancestors=%s",
			form(req.GetContext()), form(req.GetRunInput()), len(req.GetParents()), len(req.GetViews()), each, req.GetAncestors())
		if got != test.want || req.GetCount() != 2 || req.GetIndex() != 0 {
			t.Errorf("%s: %s, want %s; instance %d of %d", name, got, test.want, req.GetIndex(), req.GetCount())
		}
		if _, again := s.request(1, test.fails); again != test.again {
			t.Errorf("%s: the next instance needs %s, want %s", name, again, test.again)
		}
	}
}

// A call that was interrupted is made again for the next message.
func TestInterruptedCallIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := ended(t, 5<<10)
	i, _ := s.core.Index("last[0]")
	for range 2 {
		if _, call := s.Draft().ExecuteRequest(&flight.Unit{Lead: i, Members: []int{i}}, start); call == nil || call.Summary != "store its context" {
			t.Errorf("call %+v", call)
		}
	}
}

// The outputs of ancestors are stored again once an instance of one of them has run again.
func TestRerunOfAnInstanceChangesTheVersionOfAncestors(t *testing.T) {
	t.Parallel()
	s := begin(t, &historyv1.RunInput{Definition: &v1.Definition{Tasks: map[string]*v1.TaskDefinition{
		"each": {Type: v1.TypeShell, Parallel: structpb.NewNumberValue(2), MaxFailures: 2, Retry: &v1.RetryPolicy{MaxRetries: new(int32(1))}},
		"last": {Type: v1.TypeShell, DependsOn: []string{"each"}},
	}}})
	s.happen(dag.Expanded{Task: 0, Count: 2})
	s.end("each[0]", v1.TaskCompleted, nil)
	s.end("each[1]", v1.TaskFailed, nil)
	s.happen(dag.BackoffOver{Task: 3, Claim: s.core.Task(3).Claim})
	s.end("each[1]", v1.TaskFailed, nil)
	before, state := s.ancestorsVersion(1), s.core.Task(0).State
	if err := s.core.MayRetry(3); err != nil || !v1.IsTaskTerminal(state) {
		t.Fatalf("each is %s; its instance cannot be retried: %v", state, err)
	}
	s.happen(dag.Retry{Task: 3})
	s.end("each[1]", v1.TaskCompleted, nil)
	if again := s.core.Task(0).State; again != state || s.ancestorsVersion(1) == before {
		t.Errorf("each is %s, before %s; the version is the same: %v", again, state, s.ancestorsVersion(1) == before)
	}
}

// A task gets the names of ancestors that completed in the ordinary way, and the ends of all others, with the items of parents that
// fanned out.
func TestAncestorEnds(t *testing.T) {
	t.Parallel()
	retry := func(most int32) *v1.RetryPolicy { return &v1.RetryPolicy{MaxRetries: &most} }
	items := structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("a"), structpb.NewStringValue("b")}})
	s := begin(t, &historyv1.RunInput{Definition: &v1.Definition{Tasks: map[string]*v1.TaskDefinition{
		"far":    {Type: v1.TypeShell, Retry: retry(0)},
		"ok":     {Type: v1.TypeShell},
		"again":  {Type: v1.TypeShell, Retry: retry(1)},
		"lint":   {Type: v1.TypeShell, DependsOn: []string{"ok"}},
		"deploy": {Type: v1.TypeShell, DependsOn: []string{"far"}},
		"each":   {Type: v1.TypeShell, Foreach: items, Retry: retry(0)},
		"tell":   {Type: v1.TypeShell, DependsOn: []string{"again", "lint", "deploy", "each"}, When: "always"},
	}}})
	each, _ := s.core.Index("each")
	s.happen(dag.Expanded{Task: each, Count: 2})
	s.end("each[0]", v1.TaskCompleted, nil)
	for _, name := range []string{"far", "again", "each[1]"} {
		s.end(name, v1.TaskFailed, nil)
	}
	again, _ := s.core.Index("again")
	s.happen(dag.BackoffOver{Task: again, Claim: s.core.Task(again).Claim})
	for _, name := range []string{"again", "ok", "lint"} {
		s.end(name, v1.TaskCompleted, nil)
	}
	tell, _ := s.core.Index("tell")
	ends := s.ancestorEnds(tell)
	var others []string
	for _, end := range ends.GetOthers() {
		text := strings.TrimSpace(fmt.Sprintf("%s %s %s", end.GetTask(), end.GetState(), end.GetReason()))
		if n := end.GetFanOut(); n != nil {
			text += fmt.Sprintf(" %d of %d, %d items", n.GetCompleted(), n.GetCount(), len(n.GetItems().GetList().GetValues()))
		}
		others = append(others, text)
	}
	slices.Sort(others)
	want := "again completed, deploy skipped upstream, each failed instances 1 of 2, 2 items, far failed"
	if got := strings.Join(others, ", "); got != want || strings.Join(ends.GetCompleted(), " ") != "lint ok" {
		t.Errorf("completed %v, others %s, want %s", ends.GetCompleted(), got, want)
	}
}

// A partition gets what its task sees, and its task without what the run has decided already.
func TestPartitionInput(t *testing.T) {
	t.Parallel()
	s := ended(t, 10)
	last, _ := s.core.Index("last")
	s.Input.ByRole, s.Input.CacheScope = "user", "all"
	s.Input.Workflows = &historyv1.FrozenWorkflows{Environments: &historyv1.ApprovedEnvironments{Digests: map[string]string{"tools": "digest"}}}
	s.commands.SubmittedBy = "ann"
	s.Input.Definition.Source = &v1.SourceDefinition{Git: "file:///srv/app.git"}
	if req, _ := s.request(0, nil); req.GetApprovedEnvironments().GetDigests()["tools"] != "digest" {
		t.Errorf("the request covers the environments %v", req.GetApprovedEnvironments())
	}
	if req, _ := s.request(0, nil); req.GetGitSource() == nil {
		t.Error("the request has no source")
	}
	d := s.Draft()
	for {
		in, call := d.PartitionInput(&fanout.Opening{Task: last, Partition: &historyv1.Partition{Task: "last"}})
		if call != nil {
			d.Answered(call, nil)
			continue
		}
		task, part := in.GetDefinition().GetTasks()["last"], in.GetPartition()
		if len(task.GetDependsOn()) > 0 || len(part.GetParents()) != 3 || len(part.GetViews()) != 2 || len(part.GetEnds().GetOthers()) != 2 ||
			in.GetParentFirst() != "first" || in.GetCacheScope() != "ann" || in.GetWorkflows() == nil || in.GetDefinition().GetSource() == nil {
			t.Errorf("the input is %v", in)
		}
		return
	}
}

// Users share no cached results. Operators do, and runs without a role. A partition has the scope of its run.
func TestCacheScope(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		role string
		part *historyv1.Partition
		want string
	}{
		{v1.RoleUser, nil, "ann"}, {v1.RoleOperator, nil, "all"}, {v1.RoleAdmin, nil, "all"}, {"", nil, "all"}, {v1.RoleUser, &historyv1.Partition{}, "all"},
	} {
		s := begin(t, &historyv1.RunInput{Definition: &v1.Definition{Tasks: map[string]*v1.TaskDefinition{"a": {Type: v1.TypeShell}}}, ByRole: test.role, CacheScope: "all", Partition: test.part})
		s.commands.SubmittedBy = "ann"
		if got := s.CachedResult(flight.NewEnd(flight.Place{}, flight.Member{}), start).GetScope(); got != test.want {
			t.Errorf("role %q, partition %v: %q", test.role, test.part, got)
		}
	}
}
