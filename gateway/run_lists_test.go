package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/auth"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

func (f *fixture) list(t *testing.T, req *v1.ListRunsRequest) (ids []string, next string) {
	t.Helper()
	res := answer(t, f.client.ListRuns, req)
	for _, run := range res.GetItems() {
		ids = append(ids, run.GetId())
	}
	return ids, res.GetNextPageToken()
}

// listed returns the state in which lists show a run of a workflow.
func (f *fixture) listed(t *testing.T, name, id string) string {
	t.Helper()
	for _, run := range answer(t, f.client.ListRuns, &v1.ListRunsRequest{Name: name}).GetItems() {
		if run.GetId() == id {
			return run.GetState()
		}
	}
	return ""
}

// TestListRunsByState lists and counts runs in each state, one of which has three generations. The newest run comes first even
// though the runs close in another order.
func TestListRunsByState(t *testing.T) {
	t.Parallel()
	f := start(t)
	const name = "listed"
	var ids []string
	for range 9 {
		ids = append(ids, f.submit(t, name, "a"))
	}
	f.submit(t, "listed-too")
	for i, state := range []string{v1.RunPending, v1.RunPendingApproval, v1.RunPaused} {
		signal(t, ids[i], setSignal, &historyv1.StatusResponse{Run: &v1.Run{State: state}})
	}
	for i, how := range []string{"completed", "failed", "rejected", "cancelled"} {
		end(t, ids[8-i], how)
	}
	if err := temporalClient.TerminateWorkflow(t.Context(), ids[4], "", ""); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		v1.RunPending: {ids[0]}, v1.RunPendingApproval: {ids[1]}, v1.RunPaused: {ids[2]}, v1.RunRunning: {ids[3]},
		v1.RunFailed: {ids[7], ids[4]}, v1.RunCancelled: {ids[5]}, v1.RunRejected: {ids[6]}, v1.RunCompleted: {ids[8]},
	}
	check := func(when string) {
		t.Helper()
		totals := map[string]int32{}
		for state, want := range want {
			totals[state] = int32(len(want))
			eventually(t, when+": visibility has the runs that are "+state, func() bool {
				got, _ := f.list(t, &v1.ListRunsRequest{Name: name, State: state})
				return slices.Equal(got, want)
			})
		}
		for _, req := range []*v1.ListRunsRequest{{}, {State: v1.RunFailed, PageSize: 1}} { // neither the state nor the page matters
			req.Name, req.Totals = name, true
			eventually(t, when+": each run is counted once", func() bool { return maps.Equal(answer(t, f.client.ListRuns, req).GetTotals(), totals) })
		}
		first := answer(t, f.client.ListRuns, &v1.ListRunsRequest{Name: name, State: v1.RunFailed, PageSize: 1})
		if n := totals[v1.RunFailed]; first.Total == nil || first.GetTotal() != n {
			t.Errorf("%s: the total on the first page is %v, want %d", when, first.Total, n)
		}
		second := &v1.ListRunsRequest{Name: name, State: v1.RunFailed, PageSize: 1, PageToken: first.GetNextPageToken()}
		if second.GetPageToken() != "" && answer(t, f.client.ListRuns, second).Total != nil {
			t.Errorf("%s: a later page has a total", when)
		}
		if whole := answer(t, f.client.ListRuns, &v1.ListRunsRequest{Name: name}); int(whole.GetTotal()) != len(whole.GetItems()) {
			t.Errorf("%s: the total of a whole list is %d", when, whole.GetTotal())
		}
	}
	check("at first")
	slices.Reverse(ids)
	var paged []string
	for token, more := "", true; more; more = token != "" {
		var page []string
		page, token = f.list(t, &v1.ListRunsRequest{Name: name, PageSize: 2, PageToken: token})
		paged = append(paged, page...)
	}
	if !slices.Equal(paged, ids) {
		t.Errorf("page by page there are %v, want %v", paged, ids)
	}
	again := ids[1] // has failed
	for _, step := range []struct{ how, from, to string }{{"cancelled", v1.RunFailed, v1.RunCancelled}, {"completed", v1.RunCancelled, v1.RunCompleted}} {
		f.retryRun(t, again)
		end(t, again, step.how)
		want[step.from] = slices.DeleteFunc(want[step.from], func(id string) bool { return id == again })
		want[step.to] = append([]string{again}, want[step.to]...) // as the newest execution
		check("when the retried run is " + step.to)
	}
}

// TestListRunsFilters filters lists by the properties of runs, by their nodes and by submission time, with values in user
// notation.
func TestListRunsFilters(t *testing.T) {
	t.Parallel()
	f := start(t)
	now := time.Now()
	parent := f.submit(t, "filtered-parent")
	odd := "zone:a/1 (100%); --"
	one := visibility.Started("filtered", v1.TriggerSubmit, now)
	one.Nodes, one.Labels, one.Types, one.Text = []string{"gpu-1", "gpu-2"}, []string{"GPU", odd}, []string{"container", "shell"}, "disk full reads meters"
	two := visibility.StartedBy(parent, "filtered", now.Add(-3*time.Hour))
	two.Nodes, two.Labels, two.Types, two.Text = []string{"gpu-10"}, []string{"gpu", "größe"}, []string{"vps"}, "100% done"
	one.AddOrigin("ann@laptop"+auth.Unverified, "sweep-7")
	two.AddOrigin("ann", "sweep-70")
	first, second := startedWith(t, one), startedWith(t, two)
	for what, test := range map[string]struct {
		filter *v1.ListRunsRequest
		want   []string
	}{
		"none":                   {&v1.ListRunsRequest{}, []string{second, first}},
		"node":                   {&v1.ListRunsRequest{Node: "gpu-1"}, []string{first}},
		"node and type":          {&v1.ListRunsRequest{Node: "gpu-2", Type: "shell", Since: timestamppb.New(now.Add(-time.Hour))}, []string{first}},
		"another type":           {&v1.ListRunsRequest{Node: "gpu-2", Type: "vps"}, nil},
		"label":                  {&v1.ListRunsRequest{Label: "gpu"}, []string{second}},
		"label with signs":       {&v1.ListRunsRequest{Label: odd}, []string{first}},
		"label in UTF-8":         {&v1.ListRunsRequest{Label: "größe"}, []string{second}},
		"trigger":                {&v1.ListRunsRequest{Trigger: v1.TriggerChild}, []string{second}},
		"parent":                 {&v1.ListRunsRequest{Parent: parent[:len(parent)-1]}, []string{second}},
		"owner":                  {&v1.ListRunsRequest{Owner: "ann@laptop"}, []string{first}},
		"owner as runs show it":  {&v1.ListRunsRequest{Owner: "ann@laptop" + auth.Unverified}, []string{first}},
		"owner's prefix":         {&v1.ListRunsRequest{Owner: "ann"}, []string{second}},
		"batch":                  {&v1.ListRunsRequest{Batch: "sweep-7"}, []string{first}},
		"batch of another owner": {&v1.ListRunsRequest{Batch: "sweep-7", Owner: "ann"}, nil},
		"since":                  {&v1.ListRunsRequest{Since: timestamppb.New(now.Add(-time.Hour))}, []string{first}},
		"words":                  {&v1.ListRunsRequest{Text: "full"}, []string{first}},
		"words with a percent":   {&v1.ListRunsRequest{Text: "100%"}, []string{second}},
		"words of nothing":       {&v1.ListRunsRequest{Text: "absent"}, nil},
		"all of a node's prefix": {&v1.ListRunsRequest{Node: "gpu"}, nil},
	} {
		test.filter.Name = "filtered"
		eventually(t, what+": visibility has the runs", func() bool {
			got, _ := f.list(t, test.filter)
			return slices.Equal(got, test.want)
		})
	}
	for _, value := range []string{`x' OR WorkflowId != '`, `\`, "a\nb"} {
		for _, filter := range []*v1.ListRunsRequest{{Label: value}, {Type: value}, {Trigger: value}, {Name: value}, {Batch: value}, {State: value}} {
			refused(t, fmt.Sprint(filter), f.client.ListRuns, filter, connect.CodeInvalidArgument)
		}
	}
}

// TestRunsAreResolvedForTheirOwner finds runs by prefix and as "last", right after their submission and at another gateway, which
// has only the data of Temporal.
func TestRunsAreResolvedForTheirOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, other := startLocked(t, dir), startLocked(t, dir)
	ann, _ := f.token(t, "resolving-ann", v1.RoleUser)
	f.client, other.client = f.dialAs(t, ann), other.dialAs(t, ann)
	first := f.submit(t, "resolved-one")
	second := f.submit(t, "resolved-two")
	for text, want := range map[string]string{"last": second, "resolved-one": first, "resolved-t": second, first: first, second[:len(second)-1]: second} {
		if run := f.get(t, text); run.GetId() != want {
			t.Errorf("%s is %s, not %s", text, run.GetId(), want)
		}
	}
	refused(t, "an ambiguous prefix", f.client.GetRun, &v1.GetRunRequest{Id: "resolved-"}, connect.CodeInvalidArgument, first, second)
	for text, want := range map[string]string{"last": second, "resolved-o": first} {
		eventually(t, "the other gateway resolves "+text, func() bool {
			res, err := other.client.GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: text}))
			return err == nil && res.Msg.GetRun().GetId() == want
		})
	}
}

// TestRunKeepsOwnerAndBatch checks that the runs of a batch are found together with their owners. A copy of a run
// belongs to the same batch and to the caller who made it; a retried run keeps its owner.
func TestRunKeepsOwnerAndBatch(t *testing.T) {
	t.Parallel()
	f := start(t)
	ann, bob := f.dialClaiming(t, "ann@laptop"), f.dialClaiming(t, "bob")
	submit := submitRequest(document("swept", "a"))
	submit.Batch = "night-7"
	first := do(t, ann.SubmitRun, submit).GetId()
	second := do(t, bob.RerunRun, &v1.RerunRunRequest{Id: first}).GetId()
	end(t, first, "failed")
	do(t, bob.RetryRun, &v1.RetryRunRequest{Id: first})
	if in := f.inputOf(t, first); in.GetGeneration() != 1 || in.GetBatch() != "night-7" {
		t.Errorf("the next generation was started with %v", in)
	}
	for owner, want := range map[string][]string{"ann@laptop": {first}, "bob": {second}, "": {first, second}} { // the newest execution comes first
		eventually(t, "the runs of "+owner+" are listed", func() bool {
			got, _ := f.list(t, &v1.ListRunsRequest{Batch: "night-7", Owner: owner})
			return slices.Equal(got, want)
		})
	}
	if run := answer(t, f.client.ListRuns, &v1.ListRunsRequest{Batch: "night-7"}).GetItems()[0]; run.GetSubmittedBy() != "ann@laptop"+auth.Unverified || run.GetBatch() != "night-7" {
		t.Errorf("the run is %v", run)
	}
	do(t, bob.CancelRun, &v1.CancelRunRequest{Id: first, Reason: "enough"})
	waitClosed(t, first)
	if run := f.get(t, first); run.GetError() != "bob"+auth.Unverified+"enough" {
		t.Errorf("the run was told %q", run.GetError())
	}
	refused(t, "a batch with a space", f.client.SubmitRun, &v1.SubmitRunRequest{Batch: "a b", Source: submit.GetSource()}, connect.CodeInvalidArgument)
	end(t, second, "completed")
}

// TestRunsShowTheirTrigger checks that every response shows how a run was started, while the run is open and after its end.
func TestRunsShowTheirTrigger(t *testing.T) {
	t.Parallel()
	f := start(t)
	want := func(id, trigger, parent string) {
		t.Helper()
		w := f.watch(t, id)
		w.next()
		shown := map[string]*v1.Run{"get": f.get(t, id), "watch": w.run}
		eventually(t, "visibility has the run", func() bool {
			items := answer(t, f.client.ListRuns, &v1.ListRunsRequest{Name: "triggered", Trigger: trigger}).GetItems()
			at := slices.IndexFunc(items, func(run *v1.Run) bool { return run.GetId() == id })
			if at >= 0 {
				shown["list"] = items[at]
			}
			return at >= 0
		})
		for what, run := range shown {
			if run.GetTrigger() != trigger || run.GetParent() != parent {
				t.Errorf("%s: run %s is started by %q of %q, want %q of %q", what, id, run.GetTrigger(), run.GetParent(), trigger, parent)
			}
		}
	}
	submitted := f.submit(t, "triggered")
	want(submitted, v1.TriggerSubmit, "")
	child := startedWith(t, visibility.StartedBy(submitted, "triggered", time.Now()))
	want(child, v1.TriggerChild, submitted)
	end(t, child, "completed")
	want(child, v1.TriggerChild, submitted)
	end(t, submitted, "failed")
	f.retryRun(t, submitted)
	eventually(t, "the retry has begun", func() bool { return f.get(t, submitted).GetGeneration() == 1 })
	want(submitted, v1.TriggerRetry, "")
	endByForce(t, submitted, "")
	want(submitted, v1.TriggerRetry, "")
	rerun := do(t, f.client.RerunRun, &v1.RerunRunRequest{Id: submitted}).GetId()
	terminate(t, rerun)
	want(rerun, v1.TriggerRerun, "")
}

// TestUnreadableRunIsLeftOutOfLists checks that lists skip a run whose input is not a RunInput, and name it in a
// warning.
func TestUnreadableRunIsLeftOutOfLists(t *testing.T) {
	t.Parallel()
	f := start(t)
	const node = "unreadable-node"
	bad, known := names.NewRunID("unreadable"), visibility.Started("unreadable", v1.TriggerSubmit, time.Now())
	known.Nodes, known.DeadLetters = []string{node}, 1
	execute(t, client.StartWorkflowOptions{ID: bad, TypedSearchAttributes: known.Typed()}, names.RunWorkflow, "x")
	waitClosed(t, bad)
	isNamed := func(warnings []string) bool { return strings.Contains(strings.Join(warnings, "\n"), "run "+bad) }
	eventually(t, "the list of all events names the run", func() bool {
		return isNamed(answer(t, f.client.ListRunEvents, &v1.ListRunEventsRequest{Node: node}).GetWarnings())
	})
	eventually(t, "the list of dead letters names the run", func() bool {
		return isNamed(answer(t, f.client.ListDeadLetters, &v1.ListDeadLettersRequest{}).GetWarnings())
	})
	if _, err := f.client.GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: bad})); err == nil || !strings.Contains(err.Error(), "not that of a run") {
		t.Errorf("the run itself: %v", err)
	}
}
