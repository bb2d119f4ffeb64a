package runindex

import (
	"fmt"
	"slices"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"switchyard/gateway/paging"
	"switchyard/workflows/visibility"
)

func TestNewestExecutionsAreTheNewestOfTheirRunsInOrder(t *testing.T) {
	t.Parallel()
	f := &fakeVisibility{t: t, runs: []*workflowpb.WorkflowExecutionInfo{
		execution("old-0k", "1", 90*24*time.Hour, completed, visibility.Attributes{}),
		execution("again-0k", "1", 3*time.Hour, failed, visibility.Attributes{}),
		execution("again-0k", "2", 2*time.Hour, running, visibility.Attributes{}),
		execution("new-0k", "1", time.Second, running, visibility.Attributes{}),
		execution("next-0k", "1", time.Second, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW, visibility.Attributes{}),
	}}
	x := f.index()
	want := []string{"new-0k 1", "again-0k 2", "old-0k 1"}
	for _, n := range []int{1, 2, 3, 9} {
		found, err := x.NewestExecutions(operator(t), RunsQuery, nil, n, AnyExecution)
		if got, want := idsOf(found), want[:min(n, len(want))]; err != nil || !slices.Equal(got, want) {
			t.Errorf("the newest %d: %v, %v, want %v", n, got, err, want)
		}
	}
}

// TestNewestExecutionsReadNoMoreThanTheyNeed checks that a short list of new runs does not read all old ones.
func TestNewestExecutionsReadNoMoreThanTheyNeed(t *testing.T) {
	t.Parallel()
	f := &fakeVisibility{t: t}
	for i := range 100 {
		f.runs = append(f.runs, execution(fmt.Sprintf("run-%03d", i), "1", time.Duration(i)*time.Hour+time.Second, completed, visibility.Attributes{}))
	}
	found, err := f.index().NewestExecutions(operator(t), RunsQuery, nil, 2, AnyExecution)
	if got := idsOf(found); err != nil || !slices.Equal(got, []string{"run-000 1", "run-001 1"}) {
		t.Errorf("found %v, %v", got, err)
	}
	if f.lists > 5 {
		t.Errorf("it read %d pages", f.lists)
	}
}

func TestNewestExecutionsContinueAfterAPosition(t *testing.T) {
	t.Parallel()
	f := &fakeVisibility{t: t, runs: []*workflowpb.WorkflowExecutionInfo{
		execution("a-0k", "1", time.Hour, completed, visibility.Attributes{}),
		execution("b-0k", "2", time.Hour, completed, visibility.Attributes{}), // at the same time as the others
		execution("c-0k", "3", time.Hour, completed, visibility.Attributes{}),
		execution("d-0k", "4", time.Minute, running, visibility.Attributes{}),
		execution("e-0k", "0", 40*24*time.Hour, completed, visibility.Attributes{}),
	}}
	x := f.index()
	var all []string
	var after *paging.Position
	for {
		found, err := x.NewestExecutions(operator(t), RunsQuery, after, 2, AnyExecution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, idsOf(found)...)
		if len(found) < 2 {
			break
		}
		last := paging.PositionOf(found[1])
		after = &last
	}
	if want := []string{"d-0k 4", "c-0k 3", "b-0k 2", "a-0k 1", "e-0k 0"}; !slices.Equal(all, want) {
		t.Errorf("the pages list %v, want %v", all, want)
	}
}

// TestOwnersFindOnlyTheirRuns checks that no list shows the run of another owner, also if a database ignores case.
func TestOwnersFindOnlyTheirRuns(t *testing.T) {
	t.Parallel()
	f := &fakeVisibility{t: t, runs: []*workflowpb.WorkflowExecutionInfo{
		execution("hers-0k", "1", time.Minute, running, visibility.Attributes{Owner: "ann"}),
		execution("claimed-0k", "1", time.Minute, running, visibility.Attributes{Owner: "ann (unverified)"}),
		execution("hers-too-0k", "1", time.Minute, running, visibility.Attributes{Owner: "Ann"}),
		execution("his-0k", "1", time.Minute, running, visibility.Attributes{Owner: "bob"}),
		execution("free-0k", "1", time.Minute, running, visibility.Attributes{}),
	}}
	x := f.index()
	found, err := x.NewestRuns(ann(t), RunsQuery, nil, 9, AnyExecution)
	if got := idsOf(found); err != nil || !slices.Equal(got, []string{"hers-0k 1"}) {
		t.Errorf("she finds %v, %v", got, err)
	}
	if found, err := x.NewestRuns(t.Context(), RunsQuery, nil, 9, AnyExecution); err != nil || len(found) > 0 {
		t.Errorf("a request without a caller finds %v, %v", idsOf(found), err)
	}
	newest, err := x.NewestOf(ann(t), []string{"hers-0k", "hers-too-0k", "his-0k", "none-0k", "no'id"})
	if err != nil || len(newest) != 1 || newest["hers-0k"] == nil {
		t.Errorf("of the given runs she finds %v, %v", newest, err)
	}
}

func TestNewestRunsOmitReplacedGenerations(t *testing.T) {
	t.Parallel()
	letters := visibility.Attributes{DeadLetters: 1}
	f := &fakeVisibility{t: t, runs: []*workflowpb.WorkflowExecutionInfo{
		execution("retried-0k", "1", 3*time.Hour, failed, visibility.Attributes{}),
		execution("retried-0k", "2", time.Hour, running, visibility.Attributes{}),
		execution("letters-0k", "1", 4*time.Hour, completed, letters),
		execution("letters-0k", "2", 2*time.Hour, completed, visibility.Attributes{}),
		execution("kept-0k", "1", 5*time.Hour, failed, visibility.Attributes{}),
		execution("rerun-0k", "1", 6*time.Hour, completed, visibility.Attributes{}),
		execution("rerun-0k", "2", 30*time.Minute, completed, visibility.Attributes{}),
		execution("open-0k", "1", 7*time.Hour, completed, visibility.Attributes{}),
		execution("open-0k", "2", 3*time.Hour, running, visibility.Attributes{}),
	}}
	x := f.index()
	for status, want := range map[string][]string{
		"Failed":    {"kept-0k 1"},
		"Completed": {"rerun-0k 2", "letters-0k 2"},
		"Running":   {"retried-0k 2", "open-0k 2"},
	} {
		// Pages of one run, so that it has to continue after a replaced one.
		for _, n := range []int{1, 9} {
			found, err := x.NewestRuns(operator(t), RunsQuery+" AND ExecutionStatus = '"+status+"'", nil, n, AnyExecution)
			if got := idsOf(found); err != nil || !slices.Equal(got, want[:min(n, len(want))]) {
				t.Errorf("%d runs that are %s: %v, %v, want %v", n, status, got, err, want)
			}
		}
	}
}

func TestActiveSinceFindsOpenRunsAndThoseThatClosedSince(t *testing.T) {
	t.Parallel()
	f := &fakeVisibility{t: t, runs: []*workflowpb.WorkflowExecutionInfo{
		execution("open-0k", "1", 9*time.Hour, running, visibility.Attributes{Owner: "ann"}),
		execution("over-0k", "1", 10*time.Minute, completed, visibility.Attributes{Owner: "bob"}),
		execution("past-0k", "1", 5*time.Hour, completed, visibility.Attributes{}),
	}}
	found, err := f.index().ActiveSince(t.Context(), noon.Add(-time.Hour), 10)
	if got := idsOf(found); err != nil || !slices.Equal(got, []string{"over-0k 1", "open-0k 1"}) {
		t.Errorf("active are %v, %v", got, err)
	}
}

func TestOpenOfTypeFindsOpenRunsByPrefix(t *testing.T) {
	t.Parallel()
	vps := visibility.Attributes{Types: []string{"shell", "vps"}}
	f := &fakeVisibility{t: t, runs: []*workflowpb.WorkflowExecutionInfo{
		execution("box-a2", "1", time.Hour, running, vps),
		execution("box-b2", "1", time.Hour, completed, vps),
		execution("BOX-c2", "1", time.Hour, running, vps),
		execution("box-d2", "1", time.Hour, running, visibility.Attributes{Types: []string{"shell"}}),
		execution("other-a2", "1", time.Hour, running, vps),
	}}
	x := f.index()
	if ids, err := x.OpenOfType(t.Context(), "vps", "box-", 5); err != nil || !slices.Equal(ids, []string{"box-a2"}) {
		t.Errorf("found %v, %v", ids, err)
	}
	if ids, err := x.OpenOfType(t.Context(), "vps", "box' OR", 5); err != nil || len(ids) > 0 {
		t.Errorf("what is no prefix of an id finds %v, %v", ids, err)
	}
	var visited []string
	err := x.EachOpenOfTypes(t.Context(), []string{"vps", "k8s_job"}, func(info *workflowpb.WorkflowExecutionInfo) bool {
		visited = append(visited, info.GetExecution().GetWorkflowId())
		return len(visited) < 3
	})
	slices.Sort(visited)
	if err != nil || !slices.Equal(visited, []string{"BOX-c2", "box-a2", "other-a2"}) {
		t.Errorf("visited %v, %v", visited, err)
	}
}
