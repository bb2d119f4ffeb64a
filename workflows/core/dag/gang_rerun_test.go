package dag_test

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// TestGangRunsAgainAsAWhole checks that all members of a gang run again with one of them, also those that have completed: by a retry
// of a dead letter in an open run, in the next generation, and of everything that did not complete.
func TestGangRunsAgainAsAWhole(t *testing.T) {
	t.Parallel()
	g, err := dag.NewGraph(&v1.Definition{Tasks: map[string]*v1.TaskDefinition{
		"after": {DependsOn: []string{"train"}},
		"train": {Gang: &v1.Gang{Size: 3}, Parallel: structpb.NewNumberValue(3)},
		"zero":  {},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dead := dag.Record{State: "dead_letter", Reason: "gang", Claim: 2, Attempt: 1}
	records := func(zero string, members ...dag.Record) []dag.Record {
		return append([]dag.Record{{State: "failed", Reason: "instances", Claim: 1}, {State: "skipped", Reason: "upstream"}, {State: zero, Claim: 1}}, members...)
	}
	expanded := dag.WithExpansion(0, 0, 3, false)
	check := func(name string, s *dag.State, d dag.Decisions) {
		t.Helper()
		if placed := len(d.Place); placed != 3 || s.Task(1).State != "pending" {
			t.Errorf("%s: %d members are placed: %v %v %v, after is %s", name, placed, s.Task(3).State, s.Task(4).State, s.Task(5).State, s.Task(1).State)
		}
	}
	s, err := dag.Reopen(g, records("completed", dead, dead, dead), dag.Rerun{Tasks: []string{"train[1]"}}, expanded)
	if err != nil {
		t.Fatal(err)
	}
	check("a dead letter", s, s.Start())
	s, err = dag.Reopen(g, records("completed", dead, dag.Record{State: "completed", Claim: 2}, dag.Record{State: "cancelled", Claim: 2}), dag.Rerun{Failed: true}, expanded)
	if err != nil {
		t.Fatal(err)
	}
	check("what did not complete", s, s.Start())
	s = dag.Restore(g, records("running", dead, dead, dead), expanded)
	s.Start()
	check("an open run", s, s.Apply(dag.Retry{Task: 4}))
}
