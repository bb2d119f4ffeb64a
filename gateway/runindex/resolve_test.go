package runindex

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	workflowpb "go.temporal.io/api/workflow/v1"

	"switchyard/gateway/rpcerror"
	"switchyard/workflows/visibility"
)

func TestResolveFindsTheRunThatATextNames(t *testing.T) {
	t.Parallel()
	f := &fakeVisibility{t: t, runs: []*workflowpb.WorkflowExecutionInfo{
		execution("build-a2", "1", time.Hour, running, visibility.Attributes{Owner: "ann"}),
		execution("build-b2", "1", 2*time.Hour, running, visibility.Attributes{Owner: "bob"}),
		execution("build-b23", "1", 2*time.Hour, running, visibility.Attributes{Owner: "bob"}),
		execution("deploy-c2", "1", 60*24*time.Hour, completed, visibility.Attributes{Owner: "ann"}),
		execution("child-d2", "1", time.Minute, running, visibility.Attributes{Owner: "ann", Parent: "build-a2"}),
	}}
	x := f.index()
	for _, test := range []struct{ who, text, want, problem string }{
		{"an operator", "build-a2", "build-a2", ""},
		{"an operator", "build-b2", "build-b2", ""}, // although it is a prefix of another id
		{"an operator", "dep", "deploy-c2", ""},
		{"an operator", "build-", "", "ambiguous: build-a2, build-b2"},
		{"an operator", "Build-a", "", `there is no run "Build-a"`},
		{"an operator", "none", "", `there is no run "none"`},
		{"an operator", "o'clock", "", `there is no run "o'clock"`},
		{"an operator", "last", "build-a2", ""}, // a task has started the newest
		{"ann", "build-", "build-a2", ""},       // what she may not see is not ambiguous
		{"ann", "build-b2", "", `there is no run "build-b2"`},
		{"ann", "last", "build-a2", ""},
	} {
		ctx := operator(t)
		if test.who == "ann" {
			ctx = ann(t)
		}
		got, err := x.Resolve(ctx, test.text)
		if got != test.want || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: %q names %q, %v, want %q, %q", test.who, test.text, got, err, test.want, test.problem)
		}
	}
}

func TestAmbiguousTextNamesAFewCandidates(t *testing.T) {
	t.Parallel()
	f := &fakeVisibility{t: t}
	for i := range MaxCandidates + 3 {
		f.runs = append(f.runs, execution(fmt.Sprintf("run-%02d", i), "1", time.Duration(i)*time.Minute, running, visibility.Attributes{}))
	}
	_, err := f.index().Resolve(operator(t), "run-")
	if rpcerror.CodeOf(err) != connect.CodeInvalidArgument || strings.Count(err.Error(), "run-") != 1+MaxCandidates || !strings.HasSuffix(err.Error(), ", ...") {
		t.Errorf("the error is %v", err)
	}
}

// TestResolveKnowsRunsThatVisibilityDoesNotListYet checks that a run can be named as soon as it is submitted.
func TestResolveKnowsRunsThatVisibilityDoesNotListYet(t *testing.T) {
	t.Parallel()
	f := &fakeVisibility{t: t,
		runs:   []*workflowpb.WorkflowExecutionInfo{execution("build-a2", "1", time.Minute, running, visibility.Attributes{Owner: "ann"})},
		hidden: []*workflowpb.WorkflowExecutionInfo{execution("fresh-b2", "1", time.Second, running, visibility.Attributes{Owner: "bob"})},
	}
	x := f.index()
	if _, err := x.Resolve(operator(t), "fresh-"); rpcerror.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("before it is known: %v", err)
	}
	x.AddSubmitted("fresh-b2", "bob")
	for _, text := range []string{"fresh-", "last"} {
		if got, err := x.Resolve(operator(t), text); err != nil || got != "fresh-b2" {
			t.Errorf("%q names %q, %v", text, got, err)
		}
	}
	if got, err := x.Resolve(ann(t), "last"); err != nil || got != "build-a2" {
		t.Errorf("the last run of another owner is %q, %v", got, err)
	}
	// Another gateway has submitted a newer one meanwhile.
	f.runs = append(f.runs, execution("newer-c2", "1", 0, running, visibility.Attributes{}))
	if got, err := x.Resolve(operator(t), "last"); err != nil || got != "newer-c2" {
		t.Errorf("the last run is %q, %v", got, err)
	}
}

func TestLastNeedsARun(t *testing.T) {
	t.Parallel()
	if _, err := (&fakeVisibility{t: t}).index().Resolve(operator(t), "last"); rpcerror.CodeOf(err) != connect.CodeNotFound || !strings.Contains(err.Error(), "no runs yet") {
		t.Errorf("the error is %v", err)
	}
}
