package runindex

import (
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

func TestFilterRefusesTextThatCouldEndALiteral(t *testing.T) {
	t.Parallel()
	x := (&fakeVisibility{t: t}).index()
	for name, set := range map[string]func(*v1.ListRunsRequest, string){
		"node":  func(r *v1.ListRunsRequest, s string) { r.Node = s },
		"type":  func(r *v1.ListRunsRequest, s string) { r.Type = s },
		"label": func(r *v1.ListRunsRequest, s string) { r.Label = s },
		"text":  func(r *v1.ListRunsRequest, s string) { r.Text = s },
		"owner": func(r *v1.ListRunsRequest, s string) { r.Owner = s },
	} {
		for _, text := range []string{"a' OR 'b", "`", `"`, `\`, "?", "\x00", "a\nb", "  "} {
			req := &v1.ListRunsRequest{}
			set(req, text)
			if _, err := x.Filter(operator(t), req); rpcerror.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), name) {
				t.Errorf("%s %q: %v", name, text, err)
			}
		}
		req := &v1.ListRunsRequest{}
		set(req, "Grüße an ann@example.org, 100%")
		if _, err := x.Filter(operator(t), req); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFilterQueriesEveryField checks that each field of a request that selects runs is a condition of the query.
func TestFilterQueriesEveryField(t *testing.T) {
	t.Parallel()
	f := &fakeVisibility{t: t, runs: []*workflowpb.WorkflowExecutionInfo{execution("parent-a2", "1", time.Hour, running, visibility.Attributes{})}}
	since := timestamppb.New(noon)
	filter, err := f.index().Filter(operator(t), &v1.ListRunsRequest{
		Name: "build", State: v1.RunRejected, Trigger: v1.TriggerSchedule, Parent: "parent", Node: "n1", Type: "shell", Label: "gpu",
		Text: "disk", Batch: "nightly", Owner: "ann", Since: since, Late: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	query := filter.Query()
	for _, condition := range []string{
		RunsQuery, stateQueries[v1.RunRejected], names.WorkflowAttribute + " = 'build'", names.TriggerAttribute + " = '" + v1.TriggerSchedule + "'",
		names.ParentAttribute + " = 'parent-a2'", names.NodesAttribute + " = 'n1'", names.TypesAttribute + " = 'shell'",
		names.LabelsAttribute + " = 'gpu'", names.TextAttribute + " = 'disk'", names.BatchAttribute + " = 'nightly'",
		names.OwnerAttribute + " IN ('ann', 'ann (unverified)')", names.SubmittedAttribute + " >= '2026-05-01T12:00:00Z'", names.LateSinceAttribute + " IS NOT NULL",
	} {
		if !strings.Contains(query, condition) {
			t.Errorf("the query has no condition %s: %s", condition, query)
		}
	}
	if _, err := f.index().Filter(operator(t), &v1.ListRunsRequest{Parent: "none"}); rpcerror.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("an unknown parent: %v", err)
	}
}

// TestFilterMatchesExactly checks that runs are left out that a database selects because it ignores case.
func TestFilterMatchesExactly(t *testing.T) {
	t.Parallel()
	run := execution("a-a2", "1", 0, running, visibility.Attributes{
		Workflow: "build", Parent: "p-a2", Owner: "ann", Batch: "nightly", Nodes: []string{"n1", "n2"}, Labels: []string{"gpu"},
	})
	for name, test := range map[string]struct{ matches, differs RunFilter }{
		"name":   {RunFilter{ListRunsRequest: &v1.ListRunsRequest{Name: "build"}}, RunFilter{ListRunsRequest: &v1.ListRunsRequest{Name: "Build"}}},
		"parent": {RunFilter{&v1.ListRunsRequest{}, "p-a2"}, RunFilter{&v1.ListRunsRequest{}, "P-a2"}},
		"owner":  {RunFilter{ListRunsRequest: &v1.ListRunsRequest{Owner: "ann"}}, RunFilter{ListRunsRequest: &v1.ListRunsRequest{Owner: "Ann"}}},
		"batch":  {RunFilter{ListRunsRequest: &v1.ListRunsRequest{Batch: "nightly"}}, RunFilter{ListRunsRequest: &v1.ListRunsRequest{Batch: "Nightly"}}},
		"node":   {RunFilter{ListRunsRequest: &v1.ListRunsRequest{Node: "n2"}}, RunFilter{ListRunsRequest: &v1.ListRunsRequest{Node: "N2"}}},
		"label":  {RunFilter{ListRunsRequest: &v1.ListRunsRequest{Label: "gpu"}}, RunFilter{ListRunsRequest: &v1.ListRunsRequest{Label: "GPU"}}},
	} {
		if !test.matches.Matches(run) || test.differs.Matches(run) {
			t.Errorf("%s: the same text matches: %t, another one: %t", name, test.matches.Matches(run), test.differs.Matches(run))
		}
	}
	claimed := execution("a-a2", "1", 0, running, visibility.Attributes{Owner: "ann (unverified)"})
	if !(RunFilter{ListRunsRequest: &v1.ListRunsRequest{Owner: "ann"}}).Matches(claimed) {
		t.Error("the owner's runs do not include those under the name without proof")
	}
}
