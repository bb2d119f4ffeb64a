package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
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
	"switchyard/workflows/visibility"
)

const (
	// maxFailedTasks is how many failed tasks a notice describes, and logTasks how many of them with the end of their logs.
	maxFailedTasks = 10
	logTasks       = 3
	// logLines is how many lines of a log a notice has, each of at most maxLine bytes.
	logLines = 20
	maxLine  = 500
	// recentRuns is how many runs of a workflow are searched for the newest one; visibility lists runs by their start or end.
	recentRuns = 100
)

// askTimeout limits the question to a run whether it still waits for an approval.
const askTimeout = 10 * time.Second

// errDecided is why a message that asks for an approval is not sent.
var errDecided = errors.New("it was decided before the message could be delivered")

// lastTries is the longest time between two tries, unless the receiver asks for more.
const lastTries = 10 * time.Minute

// Notifier has the activities of the workflow Notify. It is safe for concurrent use.
type Notifier struct {
	Client    client.Client
	Store     *store.Store
	Evaluator *condition.Evaluator
	Sender    *notifications.Sender
	// ExternalURL returns the URL at which people open the page, or "" if it is not known.
	ExternalURL func() string
	Logger      *slog.Logger
	Now         func() time.Time
}

// Plan decides which targets are told about an event, and what they are told.
func (n *Notifier) Plan(ctx context.Context, in *historyv1.NotifyInput) (*historyv1.NotificationPlan, error) {
	run := in.GetRun()
	home := names.Home(run.GetId(), in.GetChain())
	if run.GetId() == "" {
		home = names.NotifyScheduleID(run.GetName(), in.GetAt().AsTime())
	}
	plan, err := n.plan(ctx, in, home)
	if err != nil {
		n.record(ctx, &historyv1.SendNotificationRequest{
			Notice:  &historyv1.Notice{Run: run.GetId(), Workflow: run.GetName(), Generation: run.GetGeneration(), Task: in.GetTask()},
			Message: &historyv1.NotificationMessage{Key: names.NotificationKey(home, run.GetGeneration(), in.GetEvent(), in.GetTask(), "")}, Chain: in.GetChain(),
		}, n.outcome(ctx, "", in.GetEvent(), "", err))
	}
	return plan, err
}

func (n *Notifier) plan(ctx context.Context, in *historyv1.NotifyInput, home string) (*historyv1.NotificationPlan, error) {
	run := proto.CloneOf(in.GetRun())
	tasks, err := n.failedTasks(ctx, in, home)
	if err != nil {
		return nil, err
	}
	described := slices.Sorted(maps.Keys(tasks))
	isEnd := in.GetEvent() == v1.NotifyFailed || in.GetEvent() == v1.NotifyCancelled
	if isEnd && slices.ContainsFunc(described, func(name string) bool { return tasks[name].GetFinally() }) {
		in = proto.CloneOf(in)
		in.Detail = run.GetError() + "; its finally has not completed, and `switchyard runs retry " + run.GetId() + " --finally-only` runs it again"
	}
	run.Failed = slices.DeleteFunc(slices.Clone(described), func(name string) bool { return !v1.IsTaskFailure(tasks[name].GetState()) })
	recovered := false
	if in.GetEvent() == v1.NotifyCompleted && notification.IsForRecovered(in.GetNotify()) {
		if recovered, err = n.isRecovered(ctx, run, in.GetAt().AsTime()); err != nil {
			return nil, err
		}
	}
	decisions := notification.Plan(ctx, n.Evaluator, in, run, recovered)
	if len(decisions) == 0 {
		return &historyv1.NotificationPlan{}, nil
	}
	plan := &historyv1.NotificationPlan{Notice: &historyv1.Notice{
		Run: run.GetId(), Workflow: run.GetName(), Generation: run.GetGeneration(), Task: in.GetTask(), State: run.GetState(), Reason: run.GetReason(),
		Url: notifications.PageURL(n.ExternalURL(), run.GetId(), in.GetTask(), run.GetName()), Error: notification.Cut(run.GetError(), notification.MaxError), At: in.GetAt(), Failures: int32(len(tasks)), SubmittedBy: run.GetSubmittedBy(),
	}}
	for i, name := range described[:min(len(described), maxFailedTasks)] {
		failed := &historyv1.FailedTask{Name: name, State: tasks[name].GetState(), Reason: tasks[name].GetReason(), Error: notification.Cut(tasks[name].GetError(), notification.MaxError)}
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

// isRecovered reports whether the newest run of the same workflow that ended before a completed run, or the generation before it, has
// failed. Cancelled and rejected runs do not count.
func (n *Notifier) isRecovered(ctx context.Context, run *historyv1.RunView, before time.Time) (bool, error) {
	page, err := n.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: recentRuns, Query: fmt.Sprintf(
		"WorkflowType = '%s' AND %s = '%s' AND ExecutionStatus IN ('Completed', 'Failed', 'Terminated', 'TimedOut') AND CloseTime < '%s'",
		names.RunWorkflow, names.WorkflowAttribute, run.GetName(), before.UTC().Format(time.RFC3339Nano))})
	if err != nil {
		return false, err
	}
	var newest *workflowpb.WorkflowExecutionInfo
	for _, info := range page.GetExecutions() {
		isRejected := visibility.Decode(info.GetSearchAttributes()).State == v1.RunRejected
		if !isRejected && (newest == nil || info.GetCloseTime().AsTime().After(newest.GetCloseTime().AsTime())) {
			newest = info
		}
	}
	return newest != nil && newest.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, nil
}

// failedTasks returns the tasks that have failed in a generation, those that ran at the deadline of the run, and those of finally that were
// cancelled, by name. A run without
// a final status is open or was terminated, and is asked. One that does not answer has none, so that it delays no message.
func (n *Notifier) failedTasks(ctx context.Context, in *historyv1.NotifyInput, home string) (map[string]*v1.Task, error) {
	run, failed := in.GetRun(), map[string]*v1.Task{}
	add := func(status *historyv1.StatusResponse) {
		for name, task := range status.GetRun().GetTasks() {
			wasCutOff := task.GetState() == v1.TaskCancelled && (task.GetFinally() || run.GetReason() == v1.ReasonDeadline && task.GetStartedAt() != nil)
			if wasCutOff || v1.IsTaskFailure(task.GetState()) {
				failed[name] = task
			}
		}
	}
	var status historyv1.StatusResponse
	err := n.Store.GetMessage(ctx, storekey.Status(home, run.GetGeneration()), &status)
	switch {
	case err == nil:
		add(&status)
	case errors.Is(err, store.ErrNotFound) && run.GetId() != "":
		if err := n.eachStatus(ctx, run.GetId(), run.GetGeneration(), add); err != nil {
			n.Logger.Warn("a notification does not name the failed tasks of a run without a final status", "run", run.GetId(), "error", err)
		}
	case !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrUnreadable):
		return nil, err
	}
	return failed, nil
}

// eachStatus asks a generation of a run for its tasks, part by part. It stops at the answer of another generation.
func (n *Notifier) eachStatus(ctx context.Context, run string, generation int32, add func(*historyv1.StatusResponse)) error {
	for since := int64(0); ; {
		value, err := n.Client.QueryWorkflow(ctx, run, "", names.StatusQuery, &historyv1.StatusRequest{Since: since})
		if err != nil {
			return err
		}
		var status historyv1.StatusResponse
		if err := value.Get(&status); err != nil {
			return err
		}
		if status.GetRun().GetGeneration() != generation {
			return nil
		}
		add(&status)
		if !status.GetMore() || status.GetRevision() <= since {
			return nil
		}
		since = status.GetRevision()
	}
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

// tries is what a try to deliver a message hands over to the next one.
type tries struct {
	Failures int      // tries that have failed; one that had to wait in line is none
	Told     []string // recipients that have the message
}

// Send tries once to deliver a message, and records in the store what became of it. It asks for another try if too many messages are
// on their way to the target, or if its worker is stopping. A delivery outlives its worker: if it were cut off, the receiver might get
// the message again from the next leader.
func (n *Notifier) Send(ctx context.Context, req *historyv1.SendNotificationRequest) error {
	info, stopping := activity.GetInfo(ctx), activity.GetWorkerStopChannel(ctx)
	if isClosed(stopping) {
		return temporal.NewApplicationErrorWithOptions("this process is stopping", "Stopping", temporal.ApplicationErrorOptions{NextRetryDelay: time.Millisecond, Category: temporal.ApplicationErrorCategoryBenign})
	}
	leave, wait := n.Sender.Enter(req.GetMessage().GetTarget(), info.Attempt == 1)
	if leave == nil {
		return temporal.NewApplicationErrorWithOptions("many other messages are on their way to the target", "InLine", temporal.ApplicationErrorOptions{NextRetryDelay: wait})
	}
	defer leave()
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), info.Deadline)
	defer cancel()
	if n.isDecided(ctx, req) {
		n.record(ctx, req, notification.Outcome{Target: req.GetMessage().GetTarget(), Event: req.GetMessage().GetEvent(), Err: errDecided, IsLast: true})
		return nil
	}
	err := n.deliver(ctx, req)
	if !isClosed(stopping) {
		return err
	}
	// The worker would report after leave, when the process may have ended.
	if err := n.Client.CompleteActivity(ctx, info.TaskToken, nil, err); err != nil {
		n.Logger.Warn("cannot report the outcome of a delivery; the receiver may get the message again", "run", req.GetNotice().GetRun(), "target", req.GetMessage().GetTarget(), "error", err)
	}
	return activity.ErrResultPending
}

// isDecided reports whether a message asks for an approval that its run no longer waits for. An approval about which nothing can be found
// out counts as open.
func (n *Notifier) isDecided(ctx context.Context, req *historyv1.SendNotificationRequest) bool {
	notice := req.GetNotice()
	if req.GetMessage().GetEvent() != v1.NotifyApproval {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	desc, err := n.Client.DescribeWorkflowExecution(ctx, notice.GetRun(), "")
	if err != nil || desc.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return err == nil
	}
	isAnswered, isDecided := false, false
	err = n.eachStatus(ctx, notice.GetRun(), notice.GetGeneration(), func(status *historyv1.StatusResponse) {
		state := status.GetRun().GetApproval().GetState()
		isAnswered = true
		isDecided = isDecided || v1.IsTaskTerminal(status.GetRun().GetTasks()[notice.GetTask()].GetState()) || notice.GetTask() == "" && state != "" && state != v1.ApprovalPending
	})
	return err == nil && (isDecided || !isAnswered) // a run that does not answer for its generation is in a later one
}

// isClosed reports whether a channel that carries nothing is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// deliver sends a message to its target, and records what became of it.
func (n *Notifier) deliver(ctx context.Context, req *historyv1.SendNotificationRequest) error {
	var so tries
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &so); err != nil {
			return err
		}
	}
	answer, err := n.Sender.Send(ctx, req.GetNotice(), req.GetMessage(), so.Told...)
	n.record(ctx, req, n.outcome(ctx, req.GetMessage().GetTarget(), req.GetMessage().GetEvent(), answer, err))
	if err == nil {
		return nil
	}
	next := tries{so.Failures + 1, so.Told}
	if told := notifications.Told(err); len(told) > 0 {
		next.Told = told
	}
	activity.RecordHeartbeat(ctx, next)
	return temporal.NewApplicationErrorWithOptions(err.Error(), "NotDelivered", temporal.ApplicationErrorOptions{
		NonRetryable: notifications.IsPermanent(err), NextRetryDelay: max(notifications.RetryAfter(err), notification.Wait(so.Failures)),
	})
}

// outcome returns what became of the current try of an activity.
func (n *Notifier) outcome(ctx context.Context, target, event, answer string, err error) notification.Outcome {
	info := activity.GetInfo(ctx)
	return notification.Outcome{
		Target: target, Event: event, Answer: answer, Err: err, IsLast: err != nil && isLastTry(err, n.Now().Sub(info.ScheduledTime)),
	}
}

// isLastTry reports whether no other try follows one that failed a time after the first one began.
func isLastTry(err error, passed time.Duration) bool {
	return notifications.IsPermanent(err) || passed+max(lastTries, notifications.RetryAfter(err)) > notification.Patience
}

// record adds what became of a try to the events of the run. It keeps the first failure and the newest outcome. A store that is away
// delays no message.
func (n *Notifier) record(ctx context.Context, req *historyv1.SendNotificationRequest, outcome notification.Outcome) {
	notice := req.GetNotice()
	if notice.GetRun() == "" { // a schedule has no events
		if outcome.Err != nil {
			n.Logger.Warn("people were not told of a late schedule", "workflow", notice.GetWorkflow(), "target", outcome.Target, "isLast", outcome.IsLast, "error", outcome.Err)
		}
		return
	}
	key := storekey.Notified(names.Home(notice.GetRun(), req.GetChain()), notice.GetGeneration(), req.GetMessage().GetKey())
	var before historyv1.EventSlice
	err := n.Store.GetMessage(ctx, key, &before)
	if err == nil || errors.Is(err, store.ErrNotFound) {
		after := &historyv1.EventSlice{Events: before.GetEvents()[:min(1, len(before.GetEvents()))]}
		event := outcome.Message(n.Now())
		event.Task, event.Id = notice.GetTask(), names.EventID(notice.GetGeneration(), req.GetMessage().GetKey(), int64(len(after.GetEvents())))
		after.Events = append(after.Events, event)
		err = n.Store.PutMessage(ctx, key, after)
	}
	if err != nil {
		n.Logger.Warn("cannot record what became of a notification", "run", notice.GetRun(), "target", outcome.Target, "error", err)
	}
}
