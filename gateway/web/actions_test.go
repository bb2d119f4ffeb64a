package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/dev/servicetest"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

func TestTaskStateDeterminesItsActions(t *testing.T) {
	end := []string{"cancel-task", "kill-task"}
	for name, test := range map[string]struct {
		task *v1.Task
		want []string
	}{
		"pending":             {&v1.Task{State: v1.TaskPending, Type: v1.TypeShell}, append([]string{"hold-task"}, end...)},
		"queued":              {&v1.Task{State: v1.TaskQueued, Type: v1.TypeShell}, append([]string{"hold-task"}, end...)},
		"held":                {&v1.Task{State: v1.TaskQueued, Type: v1.TypeShell, Held: true}, append([]string{"release-task"}, end...)},
		"assigned":            {&v1.Task{State: v1.TaskAssigned, Type: v1.TypeShell}, end},
		"running":             {&v1.Task{State: v1.TaskRunning, Type: v1.TypeShell}, append([]string{"pause-task"}, end...)},
		"running child":       {&v1.Task{State: v1.TaskRunning, Type: v1.TypeRun}, end},
		"fan-out":             {&v1.Task{State: v1.TaskRunning, Type: v1.TypeShell, Count: proto.Int32(3)}, end},
		"paused":              {&v1.Task{State: v1.TaskPaused, Type: v1.TypeShell, Reason: v1.ReasonSuspended}, append([]string{"resume-task"}, end...)},
		"approval":            {&v1.Task{State: v1.TaskPaused, Type: v1.TypeApproval, Reason: v1.ReasonApproval}, append([]string{"approve-task", "reject-task"}, end...)},
		"running machine":     {&v1.Task{State: v1.TaskRunning, Type: v1.TypeVPS}, append([]string{"pause-task", "restart-task", "stop-task"}, end...)},
		"paused machine":      {&v1.Task{State: v1.TaskPaused, Type: v1.TypeVPS, Reason: v1.ReasonSuspended}, append([]string{"resume-task", "stop-task"}, end...)},
		"machine that is off": {&v1.Task{State: v1.TaskLost, Type: v1.TypeVPS, Notice: "node a is silent"}, append([]string{"stop-task"}, end...)},
		"dead letter":         {&v1.Task{State: v1.TaskDeadLetter, Type: v1.TypeShell}, []string{"retry-dead-letter"}},
		"lost":                {&v1.Task{State: v1.TaskLost, Type: v1.TypeShell}, nil},
		"completed":           {&v1.Task{State: v1.TaskCompleted, Type: v1.TypeShell}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := taskVerbs(test.task); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			for _, a := range actionsOf("ci-1", "build", test.task, &auth.Principal{Role: v1.Role_ROLE_VIEWER}) {
				if a.Forbidden == "" {
					t.Errorf("a viewer may %s", a.Label)
				}
			}
		})
	}
}

// newBusyServices returns services of a fleet with a few objects of each kind, which do what actions request.
func newBusyServices(t *testing.T) *servicetest.Fake {
	t.Helper()
	f := newServicesWithApprovals()
	servicetest.AnswerWith(f, listDeadLetters, someDeadLetters())
	servicetest.AnswerWith(f, retryDeadLetter, &v1.RetryDeadLetterResponse{Run: "build-1", Tasks: []string{"compile", "test"}})
	servicetest.AnswerWith(f, purgeDeadLetter, &v1.PurgeDeadLetterResponse{Run: "build-1", Tasks: []string{"test"}})
	servicetest.AnswerWith(f, listNodes, &v1.ListNodesResponse{Items: someNodes()})
	servicetest.AnswerWith(f, getNode, &v1.GetNodeResponse{Node: someNodes()[0]})
	servicetest.AnswerWith(f, getNodeWorkers, &v1.GetNodeWorkersResponse{})
	servicetest.AnswerWith(f, drainNode, &v1.DrainNodeResponse{})
	servicetest.AnswerWith(f, undrainNode, &v1.UndrainNodeResponse{})
	servicetest.AnswerWith(f, removeNode, &v1.RemoveNodeResponse{})
	servicetest.AnswerWith(f, switchyardv1connect.ScheduleServiceGetScheduleProcedure, &v1.GetScheduleResponse{Schedule: nightly()})
	servicetest.AnswerWith(f, switchyardv1connect.ScheduleServicePauseScheduleProcedure, &v1.PauseScheduleResponse{})
	servicetest.AnswerWith(f, switchyardv1connect.ScheduleServiceTriggerScheduleProcedure, &v1.TriggerScheduleResponse{Outcome: "skipped"})
	return f
}

// TestActionsCallTheirServices submits forms as callers that just have the needed role. Their buttons are disabled for
// callers with the role below.
func TestActionsCallTheirServices(t *testing.T) {
	fleet, stored, task := newBusyServices(t), withWorkflow(t, releaseDocument), &servicetest.Fake{}
	servicetest.AnswerWith(stored, switchyardv1connect.WorkflowServiceDeleteWorkflowProcedure, &v1.DeleteWorkflowResponse{})
	fakeTask(task, "train", &v1.Task{State: v1.TaskQueued, Type: v1.TypeShell})
	servicetest.AnswerWith(task, switchyardv1connect.RunServiceHoldTaskProcedure, &v1.HoldTaskResponse{Id: "ci-1"})
	below := map[string]string{v1.RoleUser: v1.RoleViewer, v1.RoleOperator: v1.RoleUser}
	for _, test := range []struct {
		services         *servicetest.Fake
		role, page, verb string
		fields           []string
		says             string
		want             proto.Message // nil means that the action is refused
	}{
		{fleet, v1.RoleUser, "/ui/approvals", "approve-task", []string{"run", "ship-1", "task", "ask", "reason", "looks good"}, "", &v1.ApproveTaskRequest{Id: "ship-1", Task: "ask", Reason: "looks good"}},
		{fleet, v1.RoleOperator, "/ui/approvals", "approve-run", []string{"run", "deploy-1", "reason", "seen"}, "is approved", &v1.ApproveRunRequest{Id: "deploy-1", Reason: "seen", DefinitionVersion: 2}},
		{fleet, v1.RoleOperator, "/ui/approvals", "reject-run", []string{"run", "deploy-1", "reason", "too late"}, "", &v1.RejectRunRequest{Id: "deploy-1", Reason: "too late"}},
		{fleet, v1.RoleUser, "/ui/dead-letters", "retry-dead-letters", []string{"run", "build-1"}, "Run build-1 continues with compile, test.", &v1.RetryDeadLetterRequest{Run: "build-1"}},
		{fleet, v1.RoleUser, "/ui/dead-letters", "retry-dead-letter", []string{"run", "deploy-2", "task", "push"}, "", &v1.RetryDeadLetterRequest{Run: "deploy-2", Task: "push"}},
		{fleet, v1.RoleUser, "/ui/dead-letters", "purge-dead-letter", []string{"run", "build-1", "task", "test"}, "Removed test of run build-1 from the dead letters.", &v1.PurgeDeadLetterRequest{Run: "build-1", Task: "test"}},
		{fleet, v1.RoleOperator, "/ui/nodes/big", "drain-node", []string{"reason", "new disk", "deadline", "30m"}, "big", &v1.DrainNodeRequest{Name: "big", Reason: "new disk", Deadline: durationpb.New(30 * time.Minute)}},
		{fleet, v1.RoleOperator, "/ui/nodes/big", "drain-node", []string{"deadline", "soon"}, "", nil},
		{fleet, v1.RoleOperator, "/ui/nodes", "undrain-node", []string{"name", "old"}, "", &v1.UndrainNodeRequest{Name: "old"}},
		{fleet, v1.RoleOperator, "/ui/nodes", "remove-node", []string{"name", "gone"}, "", &v1.RemoveNodeRequest{Name: "gone"}},
		{fleet, v1.RoleOperator, "/ui/schedules/nightly", "pause-schedule", []string{"reason", "holidays"}, "is paused", &v1.PauseScheduleRequest{Name: "nightly", Reason: "holidays"}},
		{fleet, v1.RoleOperator, "/ui/schedules/nightly", "trigger-schedule", nil, "one is still open", &v1.TriggerScheduleRequest{Name: "nightly"}},
		{stored, v1.RoleOperator, "/ui/workflows/release", "delete-workflow", nil, "Workflow release is deleted.", &v1.DeleteWorkflowRequest{Name: "release"}},
		{task, v1.RoleUser, "/ui/runs/ci-1/tasks/train", "hold-task", []string{"reason", "not yet"}, "Task train of run ci-1 is held back", &v1.HoldTaskRequest{Id: "ci-1", Task: "train", Reason: "not yet"}},
	} {
		t.Run(test.verb, func(t *testing.T) {
			before := len(test.services.Calls())
			a := newVisitor(t, test.services, test.role).submit(test.page, test.verb, test.fields...)
			var got []proto.Message
			for _, call := range test.services.Calls()[before:] {
				if v1.RulesOf(call.Method).GetEffect() == v1.Effect_EFFECT_WRITE {
					got = append(got, call.Request)
				}
			}
			if test.want == nil {
				if a.status != http.StatusBadRequest || len(got) > 0 {
					t.Errorf("%d %s: %v", a.status, a.body, got)
				}
				return
			}
			if a.status != http.StatusOK || !strings.Contains(a.message(), test.says) || len(got) != 1 || !proto.Equal(got[0], test.want) {
				t.Errorf("%d %s: %v", a.status, a.body, got)
			}
			page := newVisitor(t, test.services, below[test.role]).get(test.page)
			form := `form[action="/ui/actions/` + test.verb + `"] button`
			for _, button := range page.all(form) {
				if !strings.Contains(attribute(button, "title"), "needs the role "+test.role) {
					t.Errorf("the button %s is open to the role %s", textOf(button), below[test.role])
				}
			}
			if all, disabled := len(page.all(form)), len(page.all(form+"[disabled]")); all == 0 || all != disabled {
				t.Errorf("%d of %d buttons are disabled for the role %s", disabled, all, below[test.role])
			}
		})
	}
}
