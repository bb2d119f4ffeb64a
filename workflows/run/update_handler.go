package run

import (
	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// updateHandler is the handler of one update that steers the run. Its command is validated on arrival, so that an invalid one
// leaves no trace, and again when the loop executes it.
type updateHandler struct {
	name, description string
	handle, validate  any // in the form that workflow.SetUpdateHandlerWithOptions expects
}

// handleCommands registers the handlers of all updates that carry a command.
func (r *run) handleCommands() error {
	for _, u := range []updateHandler{
		r.newRunHandler(names.PauseUpdate, "let nothing new start", r.mayPause, r.pause),
		r.newRunHandler(names.ResumeUpdate, "continue a paused run", r.mayResume, r.resume),
		r.newTaskHandler(names.HoldUpdate, "hold a task back", r.mayHold, r.hold),
		r.newTaskHandler(names.ReleaseUpdate, "let a held task start", r.mayUnhold, r.unhold),
		r.newTaskHandler(names.CancelTaskUpdate, "cancel a task", r.mayCancelTask, r.cancelTask),
		r.newTaskHandler(names.KillTaskUpdate, "kill a task", r.mayKill, r.kill),
		r.newDecisionHandler(names.ApproveUpdate, "approve a task", v1.ApprovalApproved, r.mayApprove, r.approve),
		r.newDecisionHandler(names.RejectUpdate, "reject a task", v1.ApprovalRejected, r.mayReject, r.reject),
		r.newRunDecisionHandler(names.ApproveRunUpdate, "approve the run, so that it starts", v1.ApprovalApproved),
		r.newRunDecisionHandler(names.RejectRunUpdate, "reject the run", v1.ApprovalRejected),
		r.newSteeringHandler(names.PauseTaskUpdate, "suspend a task that runs", actionPause, r.mayPauseTask, r.taskPaused),
		r.newSteeringHandler(names.ResumeTaskUpdate, "resume a suspended task", actionResume, r.mayResumeTask, r.taskResumed),
		r.newSteeringHandler(names.StopTaskUpdate, "stop a task that runs until it is stopped", actionStop, r.mayStop, r.taskStopped),
		r.newSteeringHandler(names.RestartTaskUpdate, "start the machine of a task again", actionRestart, r.mayRestart, r.taskRestarted),
	} {
		err := workflow.SetUpdateHandlerWithOptions(r.root, u.name, u.handle, workflow.UpdateHandlerOptions{
			Description: u.description,
			Validator:   u.validate,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// newUpdateHandler returns an update handler for one command type. Before the run has begun it accepts every command, because
// the command is validated again when it is executed.
func newUpdateHandler[C any](r *run, name, description string, validate func(C) error, handle func(workflow.Context, C) error) updateHandler {
	return updateHandler{name: name, description: description, handle: handle, validate: func(c C) error {
		if r.core == nil {
			return nil
		}
		return validate(c)
	}}
}

// newRunHandler returns the handler of a command for the run itself.
func (r *run) newRunHandler(name, description string, may func(*v1.RunCommand) error, do func(*v1.RunCommand)) updateHandler {
	return newUpdateHandler(r, name, description, may, func(ctx workflow.Context, c *v1.RunCommand) error {
		return r.perform(ctx, func() error {
			if err := may(c); err != nil {
				return err
			}
			do(c)
			return nil
		})
	})
}

// newTaskHandler returns the handler of a command for a task or an instance, which do receives as an index.
func (r *run) newTaskHandler(name, description string, may func(int) error, do func(int, *v1.TaskCommand)) updateHandler {
	return newUpdateHandler(r, name, description, r.validateTarget(may), func(ctx workflow.Context, c *v1.TaskCommand) error {
		return r.perform(ctx, func() error {
			i, err := r.target(c.GetTask(), may)
			if err == nil {
				do(i, c)
			}
			return err
		})
	})
}

// newSteeringHandler returns the handler of a command for a task's running attempt. The attempt's node performs the action,
// then did is called.
func (r *run) newSteeringHandler(name, description, action string, may func(int) error, did func(int, *v1.TaskCommand)) updateHandler {
	return newUpdateHandler(r, name, description, r.validateTarget(may), func(ctx workflow.Context, c *v1.TaskCommand) error {
		var s *steering
		err := r.perform(ctx, func() error {
			i, err := r.target(c.GetTask(), may)
			switch att := r.attempts[i]; {
			case err != nil:
			case att.isAway: // it can only be stopped
				did(i, c)
				r.endAway(att, v1.TaskStopped)
				s = &steering{done: true}
			default:
				s = r.steer(i, action, func() { did(i, c) })
			}
			return err
		})
		if err != nil {
			return err
		}
		return r.awaitSteering(ctx, s)
	})
}

// validateTarget returns a validator of task commands that applies may to the target.
func (r *run) validateTarget(may func(int) error) func(*v1.TaskCommand) error {
	return func(c *v1.TaskCommand) error {
		_, err := r.target(c.GetTask(), may)
		return err
	}
}
