package web

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
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
