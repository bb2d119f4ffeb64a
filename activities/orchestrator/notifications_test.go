package orchestrator

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/hostlist"
	"switchyard/activities/notifications"
	"switchyard/activities/store/storekey"
	"switchyard/activities/store/storetest"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/names"
	"switchyard/workflows/notification"
)

// brokenSearch is a client that lists no workflows, and whose runs do not answer.
type brokenSearch struct{ client.Client }

func (brokenSearch) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return nil, errors.New("visibility is away")
}

func (brokenSearch) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return nil, errors.New("the run does not answer")
}

func TestAPlanThatFailsIsAnEventOfTheRun(t *testing.T) {
	kept := storetest.Open(t, "mem://")
	for name, c := range map[string]struct {
		passed time.Duration
		want   string
	}{
		"first": {0, "no target was told of completed (it is tried again): "},
		"last":  {notification.Patience, "no target was told of completed (it is given up): "},
	} {
		n := &Notifier{Store: kept, Client: brokenSearch{}, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Now().Add(c.passed) }}
		env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
		env.RegisterActivity(n.Plan)
		in := &historyv1.NotifyInput{Event: v1.NotifyCompleted, At: timestamppb.Now(), Run: &historyv1.RunView{Id: "ci-" + name, Name: "ci"}, Notify: []*v1.Notification{{To: "ops", On: []string{v1.NotifyRecovered}}}}
		if _, err := env.ExecuteActivity(n.Plan, in); err == nil {
			t.Errorf("%s: no error", name)
		}
		var slice historyv1.EventSlice
		home := names.Home(in.GetRun().GetId(), "")
		err := kept.GetMessage(t.Context(), storekey.Notified(home, 0, names.NotificationKey(home, 0, v1.NotifyCompleted, "", "")), &slice)
		if err != nil || len(slice.GetEvents()) != 1 || !strings.HasPrefix(slice.GetEvents()[0].GetDetail(), c.want) {
			t.Errorf("%s: %v %v", name, err, slice.GetEvents())
		}
	}
}

// TestTasksThatWereCutOffAreNamed checks that a message about a missed deadline describes what ran then, which has not failed, and a
// finally that has not completed.
func TestTasksThatWereCutOffAreNamed(t *testing.T) {
	kept := storetest.Open(t, "mem://")
	tasks := map[string]*v1.Task{
		"build": {State: v1.TaskCompleted}, "deploy": {State: v1.TaskCancelled}, "test": {State: v1.TaskCancelled, StartedAt: timestamppb.Now()},
		"tidy": {State: v1.TaskCancelled, Finally: true},
	}
	if err := kept.PutMessage(t.Context(), storekey.Status(names.Home("ci-1", ""), 0), &historyv1.StatusResponse{Run: &v1.Run{Tasks: tasks}}); err != nil {
		t.Fatal(err)
	}
	n := &Notifier{Store: kept, Client: brokenSearch{}, Evaluator: condition.NewEvaluator(), ExternalURL: func() string { return "" }, Logger: slog.New(slog.DiscardHandler), Now: time.Now}
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivity(n.Plan)
	value, err := env.ExecuteActivity(n.Plan, &historyv1.NotifyInput{
		Event: v1.NotifyFailed, At: timestamppb.Now(), Run: &historyv1.RunView{Id: "ci-1", Name: "ci", State: v1.RunFailed, Reason: v1.ReasonDeadline},
		Notify: []*v1.Notification{{To: "ops", On: []string{v1.NotifyFailed}, If: "size(run.failed) == 0"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var plan historyv1.NotificationPlan
	if err := value.Get(&plan); err != nil || len(plan.GetMessages()) != 1 || len(plan.GetNotice().GetFailed()) != 2 || plan.GetNotice().GetFailed()[0].GetName() != "test" ||
		!strings.Contains(plan.GetMessages()[0].GetTitle(), "`switchyard runs retry ci-1 --finally-only`") {
		t.Errorf("%v: %v", err, &plan)
	}
}

func TestNoDeliveryBeginsInAStoppingProcess(t *testing.T) {
	stopping := make(chan struct{})
	close(stopping)
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.SetWorkerStopChannel(stopping)
	n := &Notifier{} // without a sender
	env.RegisterActivity(n.Send)
	_, err := env.ExecuteActivity(n.Send, &historyv1.SendNotificationRequest{})
	if again, ok := errors.AsType[*temporal.ApplicationError](err); !ok || again.NonRetryable() || again.NextRetryDelay() > time.Second {
		t.Errorf("another try at once should be asked for: %v", err)
	}
}

// waitingRun is a client of one run.
type waitingRun struct {
	client.Client
	state  enumspb.WorkflowExecutionStatus
	status *historyv1.StatusResponse // nil if the run does not answer
}

func (r waitingRun) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: r.state}}, nil
}

func (r waitingRun) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	if r.status == nil {
		return nil, errors.New("the run does not answer")
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(r.status)
	return client.NewValue(payloads), err
}

func TestFirstTryLeavesOutADecidedApproval(t *testing.T) {
	kept := storetest.Open(t, "mem://")
	sender := notifications.NewSender(notifications.NewTargets(kept, time.Now), nil, nil, time.Now)
	t.Cleanup(sender.Close)
	n := &Notifier{Store: kept, Sender: sender, Client: waitingRun{state: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED}, Logger: slog.New(slog.DiscardHandler), Now: time.Now}
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivity(n.Send)
	req := &historyv1.SendNotificationRequest{Notice: &historyv1.Notice{Run: "ci-1", Task: "ask"}, Message: &historyv1.NotificationMessage{Target: "ops", Event: v1.NotifyApproval}}
	if _, err := env.ExecuteActivity(n.Send, req); err != nil {
		t.Errorf("it was sent, which failed because no target has the name: %v", err)
	}
}

func TestOnlyApprovalsThatAreKnownToBeDecidedAreNotAskedFor(t *testing.T) {
	const open = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	task := func(state string) *historyv1.StatusResponse {
		return &historyv1.StatusResponse{Run: &v1.Run{Generation: 1, Tasks: map[string]*v1.Task{"ask": {State: state}}}}
	}
	run := func(state string) *historyv1.StatusResponse {
		return &historyv1.StatusResponse{Run: &v1.Run{Generation: 1, Approval: &v1.RunApproval{State: state}}}
	}
	for name, c := range map[string]struct {
		event, task string
		run         waitingRun
		want        bool
	}{
		"open task":            {v1.NotifyApproval, "ask", waitingRun{state: open, status: task(v1.TaskPaused)}, false},
		"approved task":        {v1.NotifyApproval, "ask", waitingRun{state: open, status: task(v1.TaskCompleted)}, true},
		"rejected task":        {v1.NotifyApproval, "ask", waitingRun{state: open, status: task(v1.TaskRejected)}, true},
		"unknown task":         {v1.NotifyApproval, "each[3]", waitingRun{state: open, status: task(v1.TaskCompleted)}, false},
		"open run":             {v1.NotifyApproval, "", waitingRun{state: open, status: run(v1.ApprovalPending)}, false},
		"approved run":         {v1.NotifyApproval, "", waitingRun{state: open, status: run(v1.ApprovalApproved)}, true},
		"closed run":           {v1.NotifyApproval, "", waitingRun{state: enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED}, true},
		"no answer":            {v1.NotifyApproval, "ask", waitingRun{state: open}, false},
		"later generation":     {v1.NotifyApproval, "ask", waitingRun{state: open, status: &historyv1.StatusResponse{Run: &v1.Run{Generation: 2}}}, true},
		"not about approvals":  {v1.NotifyLate, "ask", waitingRun{state: open, status: task(v1.TaskCompleted)}, false},
		"run without approval": {v1.NotifyApproval, "", waitingRun{state: open, status: task(v1.TaskPaused)}, false},
	} {
		n := &Notifier{Client: c.run}
		req := &historyv1.SendNotificationRequest{Notice: &historyv1.Notice{Run: "ci-1", Generation: 1, Task: c.task}, Message: &historyv1.NotificationMessage{Event: c.event}}
		if got := n.isDecided(t.Context(), req); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestTheLastTryIsKnown(t *testing.T) {
	targets := notifications.NewTargets(storetest.Open(t, "mem://"), time.Now)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	if _, _, err := targets.Put(t.Context(), "ops", &v1.NotificationTarget{Config: &v1.NotificationTarget_Ntfy{Ntfy: &v1.NtfyTarget{Url: server.URL}}}, ""); err != nil {
		t.Fatal(err)
	}
	sender := notifications.NewSender(targets, nil, hostlist.List{"127.0.0.1"}, time.Now)
	defer sender.Close()
	_, busy := sender.Send(t.Context(), &historyv1.Notice{}, &historyv1.NotificationMessage{Target: "ops"})
	for _, c := range []struct {
		err    error
		passed time.Duration
		want   bool
	}{
		{errors.New("x"), 0, false},
		{errors.New("x"), notification.Patience - 11*time.Minute, false},
		{errors.New("x"), notification.Patience - 9*time.Minute, true},
		{busy, notification.Patience - 61*time.Minute, false},
		{busy, notification.Patience - 59*time.Minute, true},
	} {
		if got := isLastTry(c.err, c.passed); got != c.want {
			t.Errorf("%v after %s: %t", c.err, c.passed, got)
		}
	}
}
