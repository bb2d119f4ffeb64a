package runindex

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	workflowpb "go.temporal.io/api/workflow/v1"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
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
		{"ann", "build-", "build-a2", ""}, // what she may not see is not ambiguous
		{"ann", "build-b2", "", `there is no run "build-b2"`},
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
	x.AddSubmitted("fresh-b2", "bob", noon)
	if got, err := x.Resolve(operator(t), "fresh-"); err != nil || got != "fresh-b2" {
		t.Errorf("a prefix names %q, %v", got, err)
	}
}

// submittedBy returns the attributes of a run that a person or program submitted some time before noon.
func submittedBy(owner, trigger string, before time.Duration) visibility.Attributes {
	a := visibility.Started("build", trigger, noon.Add(-before))
	a.AddOrigin(owner, "")
	return a
}

// TestLastIsTheRunThatTheCallerSubmittedLast checks that neither others, schedules, tasks nor persons in Temporal change what "last"
// means to a caller, and that a run becomes no newer by a later execution.
func TestLastIsTheRunThatTheCallerSubmittedLast(t *testing.T) {
	t.Parallel()
	child := visibility.StartedBy("build-o2", "build", noon)
	child.AddOrigin("olga", "")
	f := &fakeVisibility{t: t, runs: []*workflowpb.WorkflowExecutionInfo{
		execution("child-c2", "1", 0, running, child),
		execution("build-b2", "1", 0, running, submittedBy("bob", v1.TriggerSubmit, 0)),
		execution("nightly-s2", "1", 0, running, submittedBy(v1.TriggerSchedule, v1.TriggerSchedule, 0)),
		execution("manual-m2", "1", 0, running, submittedBy("", v1.TriggerManual, 0)),
		execution("retried-o2", "2", time.Minute, running, submittedBy("olga", v1.TriggerRetry, 3*time.Hour)),
		execution("continued-o2", "2", time.Minute, running, submittedBy("olga", v1.TriggerSubmit, 3*time.Hour)),
		execution("build-o2", "1", 2*time.Hour, completed, submittedBy("olga", v1.TriggerRerun, 2*time.Hour)),
		execution("build-a2", "1", 60*24*time.Hour, completed, submittedBy("ann", v1.TriggerSubmit, 60*24*time.Hour)),
		execution("build-q2", "1", time.Hour, completed, submittedBy("o'hara"+auth.Unverified, v1.TriggerSubmit, time.Hour)),
		execution("build-n2", "1", time.Hour, completed, submittedBy("", v1.TriggerSubmit, time.Hour)),
	}}
	x := f.index()
	claiming := func(name string) context.Context {
		return auth.With(t.Context(), &auth.Principal{Name: name, Role: v1.Role_ROLE_ADMIN, Kind: auth.KindNone})
	}
	for who, test := range map[string]struct {
		ctx  context.Context
		want string
	}{
		"an operator": {operator(t), "build-o2"}, "a user": {ann(t), "build-a2"},
		"a claimed name with a quotation mark": {claiming("o'hara" + auth.Unverified), "build-q2"}, "no name": {claiming(""), "build-n2"},
	} {
		if got, err := x.Resolve(test.ctx, "last"); err != nil || got != test.want {
			t.Errorf("%s: last is %q, %v, want %q", who, got, err, test.want)
		}
	}

	x.AddSubmitted("fresh-b2", "bob", noon)
	if got, err := x.Resolve(operator(t), "last"); err != nil || got != "build-o2" {
		t.Errorf("after a run of another caller: last is %q, %v", got, err)
	}
	x.AddSubmitted("fresh-o2", "olga", noon.Add(-time.Hour))
	if got, err := x.Resolve(operator(t), "last"); err != nil || got != "fresh-o2" {
		t.Errorf("after a run that visibility does not list yet: last is %q, %v", got, err)
	}
	// The caller has submitted a newer run to another gateway.
	f.runs = append(f.runs, execution("newer-o2", "1", 0, running, submittedBy("olga", v1.TriggerSubmit, time.Minute)))
	if got, err := x.Resolve(operator(t), "last"); err != nil || got != "newer-o2" {
		t.Errorf("after a run of another gateway: last is %q, %v", got, err)
	}
}

// TestLastWithoutARunNamesTheNewest checks the error for a caller who has submitted no run.
func TestLastWithoutARunNamesTheNewest(t *testing.T) {
	t.Parallel()
	for newest, run := range map[string]*workflowpb.WorkflowExecutionInfo{
		"the newest run is nightly-s2 of a schedule": execution("nightly-s2", "1", time.Minute, running, submittedBy(v1.TriggerSchedule, v1.TriggerSchedule, time.Minute)),
		"the newest run is build-b2 of bob":          execution("build-b2", "1", time.Minute, running, submittedBy("bob", v1.TriggerSubmit, time.Minute)),
	} {
		f := &fakeVisibility{t: t, runs: []*workflowpb.WorkflowExecutionInfo{run}}
		if _, err := f.index().Resolve(operator(t), "last"); rpcerror.CodeOf(err) != connect.CodeNotFound || !strings.HasSuffix(err.Error(), newest) || !strings.Contains(err.Error(), "you have not submitted a run to this gateway as olga; ") {
			t.Errorf("the error is %v, want %s", err, newest)
		}
		if _, err := f.index().Resolve(ann(t), "last"); rpcerror.CodeOf(err) != connect.CodeNotFound || !strings.HasSuffix(err.Error(), " as ann") {
			t.Errorf("the error names a run that she may not see: %v", err)
		}
	}
}
