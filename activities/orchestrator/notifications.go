package orchestrator

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/logs"
	"switchyard/activities/notifications"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/names"
	"switchyard/workflows/notification"
)

const (
	// maxFailedTasks is how many failed tasks a notice describes, and logTasks how many of them with the end of their logs.
	maxFailedTasks = 10
	logTasks       = 3
	// logLines is how many lines of a log a notice has, each of at most maxLine bytes.
	logLines = 20
	maxLine  = 500
)

// Notifier has the activities of the workflow Notify. It is safe for concurrent use.
type Notifier struct {
	Store     *store.Store
	Evaluator *condition.Evaluator
	Sender    *notifications.Sender
	Logger    *slog.Logger
}

// Plan decides which targets are told about an event, and what they are told.
func (n *Notifier) Plan(ctx context.Context, in *historyv1.NotifyInput) (*historyv1.NotificationPlan, error) {
	run := proto.CloneOf(in.GetRun())
	home := names.Home(run.GetId(), in.GetChain())
	tasks, err := n.failedTasks(ctx, home, run.GetGeneration())
	if err != nil {
		return nil, err
	}
	run.Failed = slices.Sorted(maps.Keys(tasks))
	decisions := notification.Plan(ctx, n.Evaluator, in.GetNotify(), in.GetEvent(), in.GetTask(), run)
	if len(decisions) == 0 {
		return &historyv1.NotificationPlan{}, nil
	}
	plan := &historyv1.NotificationPlan{Notice: &historyv1.Notice{
		Run: run.GetId(), Workflow: run.GetName(), Generation: run.GetGeneration(), Task: in.GetTask(), State: run.GetState(), Reason: run.GetReason(),
		Error: run.GetError(), At: in.GetAt(), Failures: int32(len(tasks)), SubmittedBy: run.GetSubmittedBy(),
	}}
	for i, name := range run.GetFailed()[:min(len(tasks), maxFailedTasks)] {
		failed := &historyv1.FailedTask{Name: name, State: tasks[name].GetState(), Reason: tasks[name].GetReason(), Error: tasks[name].GetError()}
		if i < logTasks {
			failed.Lines = n.lastLines(ctx, home, run.GetGeneration(), name, tasks[name])
		}
		plan.Notice.Failed = append(plan.Notice.Failed, failed)
	}
	for _, d := range decisions {
		plan.Messages = append(plan.Messages, &historyv1.NotificationMessage{
			Target: d.Target, Event: d.Event, Title: d.Title, Text: d.Text,
			Key: names.NotificationKey(home, run.GetGeneration(), in.GetEvent(), in.GetTask(), d.Target),
		})
	}
	return plan, nil
}

// failedTasks returns the tasks that have failed in a generation, by name. A run without a final status has none.
func (n *Notifier) failedTasks(ctx context.Context, home string, generation int32) (map[string]*v1.Task, error) {
	var status historyv1.StatusResponse
	err := n.Store.GetMessage(ctx, storekey.Status(home, generation), &status)
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrUnreadable) {
		return nil, err
	}
	failed := map[string]*v1.Task{}
	for name, task := range status.GetRun().GetTasks() {
		if v1.IsTaskFailure(task.GetState()) {
			failed[name] = task
		}
	}
	return failed, nil
}

// lastLines returns the end of the log of a failed task, or of its first failed instance. A log that cannot be read delays no
// message.
func (n *Notifier) lastLines(ctx context.Context, home string, generation int32, name string, task *v1.Task) []string {
	for _, instance := range task.GetInstances() {
		if v1.IsTaskFailure(instance.GetState()) {
			name = names.InstanceName(name, int(instance.GetIndex()))
			break
		}
	}
	lines, err := logs.LastLines(ctx, n.Store, home, generation, name, logLines)
	if err != nil {
		n.Logger.Warn("a notification has no log", "run", home, "task", name, "error", err)
	}
	for i, line := range lines {
		lines[i] = strings.ToValidUTF8(line[:min(len(line), maxLine)], "")
	}
	return lines
}

// Send tries once to deliver a message, and records in the store what became of it.
func (n *Notifier) Send(ctx context.Context, req *historyv1.SendNotificationRequest) error {
	_, err := n.Sender.Send(ctx, req.GetNotice(), req.GetMessage())
	if err == nil {
		return nil
	}
	activity.GetLogger(ctx).Debug("a notification was not delivered", "error", err)
	return temporal.NewApplicationErrorWithOptions(err.Error(), "NotDelivered", temporal.ApplicationErrorOptions{
		NonRetryable: notifications.IsPermanent(err), NextRetryDelay: notifications.RetryAfter(err),
	})
}
