package web

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect"

	"switchyard/dev/servicetest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

const (
	listSchedulesCall = switchyardv1connect.ScheduleServiceListSchedulesProcedure
	getScheduleCall   = switchyardv1connect.ScheduleServiceGetScheduleProcedure
)

// newQuietServices returns services of a fleet without problems.
func newQuietServices() *servicetest.Fake {
	f := &servicetest.Fake{}
	servicetest.AnswerWith(f, listRuns, &v1.ListRunsResponse{})
	servicetest.AnswerWith(f, listDeadLetters, &v1.ListDeadLettersResponse{})
	servicetest.AnswerWith(f, listTasksCall, &v1.ListTasksResponse{})
	servicetest.AnswerWith(f, getQueue, &v1.GetQueueResponse{})
	servicetest.AnswerWith(f, listNodes, &v1.ListNodesResponse{Items: someNodes()[:1], Total: 1})
	servicetest.AnswerWith(f, listSchedulesCall, &v1.ListSchedulesResponse{})
	return f
}

func TestOverviewOfAQuietFleetNeedsNoAttention(t *testing.T) {
	patiently(t, overviewOfAQuietFleetNeedsNoAttention)
}

func overviewOfAQuietFleetNeedsNoAttention(t *testing.T) {
	page := newVisitor(t, newQuietServices(), v1.RoleViewer).get("/")
	mustBeHarmless(t, page)
	mustContain(t, page.text("main"), "Nothing needs attention.", "active 1", "big 2 of 8 tasks", "cores 3.5 of 16", "memory 16 of 32 GiB", "GPUs 1 of 2", "No run is running.", "There are no runs yet.")
	if got := page.texts("#attention > li"); len(got) > 0 {
		t.Errorf("needs attention: %q", got)
	}
}

func TestOverviewListsProblems(t *testing.T) { patiently(t, overviewListsProblems) }

func overviewListsProblems(t *testing.T) {
	f := newQuietServices()
	servicetest.Answer(f, listRuns, func(_ context.Context, req *v1.ListRunsRequest) (*v1.ListRunsResponse, error) {
		switch req.GetState() {
		case v1.RunFailed:
			if since := req.GetSince().AsTime(); !since.Equal(testNow.Add(-24 * time.Hour)) {
				t.Errorf("failures since %s", since)
			}
			return &v1.ListRunsResponse{Items: []*v1.Run{{Id: "bad-1", State: v1.RunFailed, CompletedAt: before(time.Minute)}}, Totals: map[string]int32{v1.RunFailed: 7}}, nil
		case v1.RunRunning:
			return &v1.ListRunsResponse{Items: []*v1.Run{{Id: "build-1", State: v1.RunRunning}}}, nil
		case v1.RunPendingApproval:
			return &v1.ListRunsResponse{Items: []*v1.Run{{Id: "deploy-1", State: v1.RunPendingApproval}}}, nil
		}
		return &v1.ListRunsResponse{Items: []*v1.Run{{Id: "build-1", State: v1.RunRunning}, {Id: "bad-1", State: v1.RunFailed}}, Totals: map[string]int32{v1.RunRunning: 1, v1.RunFailed: 9}}, nil
	})
	servicetest.Answer(f, getRun, func(_ context.Context, req *v1.GetRunRequest) (*v1.GetRunResponse, error) {
		run := &v1.Run{Id: req.GetId(), Approval: &v1.RunApproval{State: v1.ApprovalPending}}
		if req.GetId() == "bad-1" {
			run.Error = `task "a" failed`
		}
		return &v1.GetRunResponse{Run: run}, nil
	})
	servicetest.Answer(f, listTasksCall, func(_ context.Context, req *v1.ListTasksRequest) (*v1.ListTasksResponse, error) {
		if req.GetType() == v1.TypeApproval {
			return &v1.ListTasksResponse{Items: []*v1.ListedTask{{Run: "ship-1", Task: "ask", Error: "ship it?"}}}, nil
		}
		return &v1.ListTasksResponse{Items: []*v1.ListedTask{
			{Run: "vm-1", Task: "machine", State: v1.TaskLost}, {Run: "x-1", Task: "late", State: v1.TaskLost, CompletedAt: before(time.Hour)}, {Run: "x-0", Task: "long-ago", State: v1.TaskLost, CompletedAt: before(48 * time.Hour)},
		}}, nil
	})
	servicetest.AnswerWith(f, listDeadLetters, someDeadLetters())
	servicetest.AnswerWith(f, getQueue, someQueue())
	servicetest.AnswerWith(f, listNodes, &v1.ListNodesResponse{Items: someNodes(), Total: 3})
	servicetest.AnswerWith(f, listSchedulesCall, &v1.ListSchedulesResponse{Items: []*v1.Schedule{{Name: "nightly"}, {Name: "hourly"}}})
	servicetest.Answer(f, getScheduleCall, func(_ context.Context, req *v1.GetScheduleRequest) (*v1.GetScheduleResponse, error) {
		if req.GetName() == "nightly" {
			return &v1.GetScheduleResponse{Schedule: &v1.Schedule{Name: "nightly", Runs: []*v1.ScheduledRun{{RunId: "n-3", State: v1.RunRunning}, {RunId: "n-2", State: v1.RunFailed}}}}, nil
		}
		return &v1.GetScheduleResponse{Schedule: &v1.Schedule{Name: "hourly", Missed: 3, Skipped: 2}}, nil
	})
	page := newVisitor(t, f, v1.RoleViewer).get("/")
	mustBeHarmless(t, page)
	for id, parts := range map[string][]string{
		"failed":           {"7 runs of the last 24 hours failed", "bad-1", `task "a" failed`, "and 6 more"},
		"dead":             {"3 or more tasks used up all retries", "compile of build-1", "exit code 2"},
		"approvals":        {"1 task waits for an approval", "ask of ship-1", "ship it?"},
		"approval-runs":    {"1 run waits for an approval", "deploy-1"},
		"impossible":       {"1 task that no online node could run", "a of odd-1", "no node has label tpu"},
		"busy":             {"12 tasks that must wait until a node has room", "big: 1 of 2 GPUs free"},
		"nodes-offline":    {"1 node offline", "gone", "no heartbeat for 20s"},
		"nodes-draining":   {"1 node draining", "old", "disk is failing"},
		"away":             {"1 task lost until the node is back", "machine of vm-1"},
		"lost":             {"1 task of the last 24 hours lost", "late of x-1"},
		"schedules-failed": {"1 schedule whose last run failed", "nightly", "n-2"},
	} {
		mustContain(t, page.text("#attention-"+id), parts...)
	}
	mustNotContain(t, page.text("main"), "Nothing needs attention", "long-ago")
	mustContain(t, page.text("#late-schedules"), "hourly", "3 starts too late, 2 skipped")
	mustContain(t, page.text("#run-totals"), "running 1", "failed 9")
	mustContain(t, page.text("#running"), "build-1")
	mustContain(t, page.text("#newest"), "bad-1")
	if got := page.link("7 runs of the last 24 hours failed"); got != "/ui/runs?since=24h&state=failed" {
		t.Errorf("failures lead to %q", got)
	}
}

func TestOverviewNamesUnreadableParts(t *testing.T) { patiently(t, overviewNamesUnreadableParts) }

func overviewNamesUnreadableParts(t *testing.T) {
	f := newQuietServices()
	servicetest.Refuse(f, listDeadLetters, connect.CodeUnavailable, "Temporal is away")
	servicetest.Refuse(f, listNodes, connect.CodeInternal, "no registry")
	page := newVisitor(t, f, v1.RoleViewer).get("/")
	mustContain(t, page.text("#attention"), "Which tasks are dead letters is unknown: Temporal is away", "The state of the nodes is unknown: no registry")
	mustContain(t, page.text("#fleet"), "The fleet is not known.")
	mustNotContain(t, page.text("main"), "Nothing needs attention")
}

// TestOverviewDoesNotWaitForASlowPart checks that a slow part does not delay the others.
func TestOverviewDoesNotWaitForASlowPart(t *testing.T) { patiently(t, overviewDoesNotWaitForASlowPart) }

func overviewDoesNotWaitForASlowPart(t *testing.T) {
	f := newQuietServices()
	servicetest.Answer(f, getQueue, func(ctx context.Context, _ *v1.GetQueueRequest) (*v1.GetQueueResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	page := newVisitor(t, f, v1.RoleViewer).get("/")
	mustContain(t, page.text("main"), "Some parts are still being read.", "active 1")
}

func TestPauseGrowsWithReadTimeUpToABound(t *testing.T) {
	for look, want := range map[time.Duration]time.Duration{
		time.Millisecond:       pollInterval,
		40 * time.Millisecond:  600 * time.Millisecond,
		100 * time.Millisecond: longestPause,
		time.Second:            4 * time.Second,
	} {
		if got := pauseAfter(look, pollInterval); got != want {
			t.Errorf("after a look of %s: %s, want %s", look, got, want)
		}
	}
}
