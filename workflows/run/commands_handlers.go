package run

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/command"
	"switchyard/workflows/names"
)

// updateHandler is the handler of one update that steers the run. Its command is validated on arrival, so that an invalid one
// leaves no trace, and again when the loop executes it.
type updateHandler struct {
	name, description string
	handle, validate  any // in the form that workflow.SetUpdateHandlerWithOptions expects
}

// handle registers the handlers of all updates.
func (cs *commands) handle() error {
	for _, u := range cs.handlers {
		err := workflow.SetUpdateHandlerWithOptions(cs.root, u.name, u.handle, workflow.UpdateHandlerOptions{
			Description: u.description,
			Validator:   u.validate,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// updateHandlers returns the handlers of all updates.
func updateHandlers(cs *commands, ct *controls, de *decisions, st *steering) []updateHandler {
	type checks = command.Checks
	return []updateHandler{
		newUpdateHandler(ct.execution, names.RetryUpdate, "retry a dead letter", ct.mayRetry, ct.retry),
		cs.newRunHandler(names.PauseUpdate, "pause the run, so that nothing new starts", checks.MayPause, ct.pause),
		cs.newRunHandler(names.ResumeUpdate, "continue a paused run", checks.MayResume, ct.resume),
		cs.newTaskHandler(names.HoldUpdate, "hold a task, so that it does not start", checks.MayHold, ct.hold),
		cs.newTaskHandler(names.ReleaseUpdate, "release a held task", checks.MayRelease, ct.unhold),
		cs.newTaskHandler(names.CancelTaskUpdate, "cancel a task", checks.MayCancel, ct.cancelTask),
		cs.newTaskHandler(names.KillTaskUpdate, "kill a task", checks.MayKill, ct.kill),
		de.newDecisionHandler(names.ApproveUpdate, "approve a task", v1.ApprovalApproved, checks.MayApprove),
		de.newDecisionHandler(names.RejectUpdate, "reject a task", v1.ApprovalRejected, checks.MayReject),
		de.newRunDecisionHandler(names.ApproveRunUpdate, "approve the run, so that it starts", v1.ApprovalApproved),
		de.newRunDecisionHandler(names.RejectRunUpdate, "reject the run", v1.ApprovalRejected),
		st.newSteeringHandler(names.PauseTaskUpdate, "suspend a running task", actionPause, checks.MaySuspend, st.taskPaused),
		st.newSteeringHandler(names.ResumeTaskUpdate, "resume a suspended task", actionResume, checks.MayContinue, st.taskResumed),
		st.newSteeringHandler(names.StopTaskUpdate, "stop a task that runs until it is stopped", actionStop, checks.MayStop, st.taskStopped),
		st.newSteeringHandler(names.RestartTaskUpdate, "restart the machine of a task", actionRestart, checks.MayRestart, st.taskRestarted),
	}
}

// mayTask checks a command for a task.
type mayTask = func(command.Checks, int, *historyv1.TaskCommand) *command.Refusal

// newUpdateHandler returns an update handler for one command type. Before the run has begun it accepts every command, because
// the command is validated again when it is executed. When the execution is about to have received as many updates as Temporal
// accepts, the handler refuses all until the run has continued as new.
func newUpdateHandler[C any](x *execution, name, description string, validate func(C) error, handle func(workflow.Context, C) error) updateHandler {
	once := func(ctx workflow.Context, c C) error {
		x.updates++
		if x.hasCarriedOut(ctx) {
			return nil
		}
		err := handle(ctx, c)
		if err == nil {
			x.carriedOut = append(x.carriedOut, workflow.GetCurrentUpdateInfo(ctx).ID)
			x.carriedOut = x.carriedOut[max(0, len(x.carriedOut)-maxCarriedOut):]
		}
		return err
	}
	return updateHandler{name: name, description: description, handle: once, validate: func(ctx workflow.Context, c C) error {
		switch {
		case x.updates >= x.limits.LastUpdates:
			return refuse(names.RunContinuingError, errContinuing)
		case x.core == nil, x.hasCarriedOut(ctx):
			return nil
		}
		return validate(c)
	}}
}

// maxCarriedOut is the number of updates whose repetition a run recognizes. Only those whose answers were lost are repeated, and
// at most 10 are in flight.
const maxCarriedOut = 50

// hasCarriedOut reports whether an earlier execution has carried out the update of a handler. Temporal recognizes the updates of
// this one.
func (x *execution) hasCarriedOut(ctx workflow.Context) bool {
	return slices.Contains(x.carriedOut, workflow.GetCurrentUpdateInfo(ctx).ID)
}

// newRunHandler returns the handler of a command for the run itself.
func (cs *commands) newRunHandler(name, description string, may func(command.Checks, *historyv1.RunCommand) *command.Refusal, do func(*historyv1.RunCommand)) updateHandler {
	validate := func(c *historyv1.RunCommand) error { return refusal(may(cs.checks(), c)) }
	return newUpdateHandler(cs.execution, name, description, validate, func(ctx workflow.Context, c *historyv1.RunCommand) error {
		return cs.perform(ctx, func() error {
			err := validate(c)
			if err == nil {
				do(c)
			}
			return err
		})
	})
}

// newTaskHandler returns the handler of a command for a task or an instance, which do receives as an index.
func (cs *commands) newTaskHandler(name, description string, may mayTask, do func(int, *historyv1.TaskCommand)) updateHandler {
	return newUpdateHandler(cs.execution, name, description, cs.validateTarget(may), func(ctx workflow.Context, c *historyv1.TaskCommand) error {
		return cs.perform(ctx, func() error {
			i, refused := cs.checks().Target(c, may)
			if refused == nil {
				do(i, c)
			}
			return refusal(refused)
		})
	})
}

// validateTarget returns a validator of task commands that applies may to the target.
func (cs *commands) validateTarget(may mayTask) func(*historyv1.TaskCommand) error {
	return func(c *historyv1.TaskCommand) error {
		_, refused := cs.checks().Target(c, may)
		return refusal(refused)
	}
}
