package web

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"unicode"
	"unicode/utf8"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

// taskActions are the actions on tasks and instances. Their fields are run and task.
var taskActions = []actionKind{
	taskAction("approve-task", "Approve", "ApproveTask", "", true, "%s is approved.", func(ctx context.Context, s services, run, task, reason string) error {
		return errorOf(s.runs.ApproveTask(ctx, connect.NewRequest(&v1.ApproveTaskRequest{Id: run, Task: task, Reason: reason})))
	}),
	taskAction("reject-task", "Reject", "RejectTask", "Reject %s? It ends as rejected, which is a failure.", true, "%s is rejected.", func(ctx context.Context, s services, run, task, reason string) error {
		return errorOf(s.runs.RejectTask(ctx, connect.NewRequest(&v1.RejectTaskRequest{Id: run, Task: task, Reason: reason})))
	}),
	taskAction("hold-task", "Hold", "HoldTask", "", true, "%s is held back until it is released.", func(ctx context.Context, s services, run, task, reason string) error {
		return errorOf(s.runs.HoldTask(ctx, connect.NewRequest(&v1.HoldTaskRequest{Id: run, Task: task, Reason: reason})))
	}),
	taskAction("release-task", "Release", "ReleaseTask", "", false, "%s may start.", func(ctx context.Context, s services, run, task, _ string) error {
		return errorOf(s.runs.ReleaseTask(ctx, connect.NewRequest(&v1.ReleaseTaskRequest{Id: run, Task: task})))
	}),
	taskAction("pause-task", "Pause", "PauseTask", "", true, "%s is paused.", func(ctx context.Context, s services, run, task, reason string) error {
		return errorOf(s.runs.PauseTask(ctx, connect.NewRequest(&v1.PauseTaskRequest{Id: run, Task: task, Reason: reason})))
	}),
	taskAction("resume-task", "Resume", "ResumeTask", "", false, "%s continues.", func(ctx context.Context, s services, run, task, _ string) error {
		return errorOf(s.runs.ResumeTask(ctx, connect.NewRequest(&v1.ResumeTaskRequest{Id: run, Task: task})))
	}),
	taskAction("restart-task", "Restart", "RestartTask", "Restart the machine of %s? Its programs are stopped; its disk is kept.", true, "The machine of %s runs again.", func(ctx context.Context, s services, run, task, reason string) error {
		return errorOf(s.runs.RestartTask(ctx, connect.NewRequest(&v1.RestartTaskRequest{Id: run, Task: task, Reason: reason})))
	}),
	taskAction("stop-task", "Stop", "StopTask", "Stop %s? It ends as stopped, which is a success.", true, "%s is being stopped.", func(ctx context.Context, s services, run, task, reason string) error {
		return errorOf(s.runs.StopTask(ctx, connect.NewRequest(&v1.StopTaskRequest{Id: run, Task: task, Reason: reason})))
	}),
	taskAction("cancel-task", "Cancel", "CancelTask", "Cancel %s? It is stopped if it is running.", true, "%s is being cancelled.", func(ctx context.Context, s services, run, task, reason string) error {
		return errorOf(s.runs.CancelTask(ctx, connect.NewRequest(&v1.CancelTaskRequest{Id: run, Task: task, Reason: reason})))
	}),
	taskAction("kill-task", "Kill", "KillTask", "Kill %s? It is stopped without a retry and ends as killed, which is a failure.", true, "%s is being killed.", func(ctx context.Context, s services, run, task, reason string) error {
		return errorOf(s.runs.KillTask(ctx, connect.NewRequest(&v1.KillTaskRequest{Id: run, Task: task, Reason: reason})))
	}),
}

// taskAction returns an action that calls the run service. done is the message on success, with %s for the task.
func taskAction(verb, label, call, asks string, reason bool, done string, send func(ctx context.Context, s services, run, task, reason string) error) actionKind {
	return actionKind{
		verb: verb, label: label, call: protoreflect.FullName(runService + call), asks: asks, reason: reason,
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			run, task := form.Get("run"), form.Get("task")
			return capitalised(fmt.Sprintf(done, taskOf(run, task))), "", send(ctx, s, run, task, form.Get(reasonField))
		},
	}
}

// errorOf returns the error of a call and drops the response.
func errorOf[M any](_ *connect.Response[M], err error) error { return err }

// taskOf describes a task to people.
func taskOf(run, task string) string { return "task " + task + " of run " + run }

// actionsOf returns the buttons for the actions that the state of a task or instance allows.
func actionsOf(run, name string, t *v1.Task, caller *auth.Principal) []Action {
	var actions []Action
	for _, verb := range taskVerbs(t) {
		actions = append(actions, newAction(verb, taskOf(run, name), caller, "run", run, "task", name))
	}
	return actions
}

// forbidDecisions disables the buttons that approve or reject a task or a run, unless the reason is "". A role that is too low stays
// their reason.
func forbidDecisions(actions []Action, why string) {
	for i := range actions {
		if why != "" && slices.Contains([]string{"approve-task", "reject-task", "approve-run", "reject-run"}, actions[i].Verb) {
			actions[i].Forbidden = cmp.Or(actions[i].Forbidden, why)
		}
	}
}

// taskVerbs returns the verbs of the actions that the state of a task allows.
func taskVerbs(t *v1.Task) []string {
	var verbs []string
	state, isSplit := t.GetState(), t.Count != nil
	switch {
	case state == v1.TaskDeadLetter:
		return []string{"retry-dead-letter"}
	case v1.HasTaskEnded(t):
		return nil
	case state == v1.TaskPaused && t.GetReason() == v1.ReasonApproval:
		verbs = append(verbs, "approve-task", "reject-task")
	case state == v1.TaskPaused:
		verbs = append(verbs, "resume-task")
	case t.GetHeld():
		verbs = append(verbs, "release-task")
	case v1.IsTaskWaiting(state):
		verbs = append(verbs, "hold-task")
	case state == v1.TaskRunning && !isSplit && v1.NeedsNode(t.GetType()):
		verbs = append(verbs, "pause-task")
	}
	if v1.Lasts(t.GetType()) && !isSplit {
		switch {
		case state == v1.TaskRunning:
			verbs = append(verbs, "restart-task", "stop-task")
		case v1.IsTaskAway(state, t.GetNotice()), state == v1.TaskPaused:
			verbs = append(verbs, "stop-task")
		}
	}
	return append(verbs, "cancel-task", "kill-task")
}

// capitalised returns a sentence with its first letter in upper case.
func capitalised(sentence string) string {
	first, size := utf8.DecodeRuneInString(sentence)
	return string(unicode.ToUpper(first)) + sentence[size:]
}
