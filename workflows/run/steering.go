package run

import (
	"cmp"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
	"switchyard/workflows/phrase"
)

// Actions that a node can perform on a running attempt: SteerRequest.action.
const (
	actionPause   = "pause"
	actionResume  = "resume"
	actionStop    = "stop"
	actionRestart = "restart"
	actionFind    = "find"
)

// steering lets people suspend, resume, stop and restart running attempts.
type steering struct {
	*execution
	commands steeringCommands

	requests int // updates that wait for the answer of a node
}

// Steering uses these parts of other components.
type (
	steeringCommands interface {
		perform(ctx workflow.Context, do func() error) error
		awaitAnswer(ctx workflow.Context, isDone func() bool) error
		checks() command.Checks
		validateTarget(may mayTask) func(*historyv1.TaskCommand) error
	}
)

// newSteeringHandler returns the handler of a command for a task's running attempt. The attempt's node performs the action,
// then did is called.
func (st *steering) newSteeringHandler(name, description, action string, may mayTask, did func(int, *historyv1.TaskCommand)) updateHandler {
	validate := func(c *historyv1.TaskCommand) error {
		if st.requests >= st.limits.NodeRequests {
			return refuse(names.TaskStateError, fmt.Errorf("%d requests to nodes of this run have no answer yet; try again", st.requests))
		}
		return st.commands.validateTarget(may)(c)
	}
	return newUpdateHandler(st.execution, name, description, validate, func(ctx workflow.Context, c *historyv1.TaskCommand) error {
		st.requests++
		defer func() { st.requests-- }()
		var s *steerRequest
		err := st.commands.perform(ctx, func() error {
			i, refused := st.commands.checks().Target(c, may)
			switch att := st.flight.AttemptOf(i); {
			case refused != nil:
			case att.Phase == flight.Away: // it can only be stopped
				did(i, c)
				st.fly(st.flight.StopAway(att))
				s = &steerRequest{done: true}
			default:
				s = st.steer(i, action, func() { did(i, c) })
			}
			return refusal(refused)
		})
		if err != nil {
			return err
		}
		return st.await(ctx, s)
	})
}

// steerRequest is a pending request to the node of an attempt. Until the node has answered, the run does not continue as new and
// the caller gets no answer.
type steerRequest struct {
	done bool
	err  error
}

// await waits for the node's answer and returns its error. To the core, a suspended task is running.
func (st *steering) await(ctx workflow.Context, s *steerRequest) error {
	if err := st.commands.awaitAnswer(ctx, func() bool { return s.done }); err != nil {
		return err
	}
	return s.err
}

// steer asks the node of task i's attempt for an action, and calls did when the node has performed it.
func (st *steering) steer(i int, action string, did func()) *steerRequest {
	s, att, claim := &steerRequest{}, st.flight.AttemptOf(i), st.core.Task(i).Claim
	st.flight.Steered(att)
	req := &historyv1.SteerRequest{RunId: st.id, Chain: st.chain, Task: st.core.Name(i), Claim: claim, Action: action}
	call := options.Steer(att.Node, action+" "+st.core.Name(i))
	if action == actionRestart {
		call = options.Restart(att.Node, action+" "+st.core.Name(i))
	}
	st.calls.Watch(st.calls.Activity(call, names.SteerActivity, req, 0), func(f workflow.Future) {
		st.flight.SteeringAnswered(att)
		s.done = true
		suspends := action == actionPause || action == actionResume
		var res historyv1.SteerResponse
		switch err := f.Get(st.ctx, &res); {
		case err != nil:
			// The node may have done it regardless. In that case the task can be resumed.
			st.flight.SetUnsure(att, att.IsUnsure() || suspends)
			s.err = refuse(names.TaskStateError, steerFailure(st.core.Name(i), att.Node, action, err))
		case res.GetRefused() != "":
			s.err = refuse(names.TaskStateError, fmt.Errorf("task %s: %s", st.core.Name(i), res.GetRefused()))
		case st.flight.AttemptOf(i) != att && action == actionPause:
			s.err = refuse(names.TaskStateError, fmt.Errorf("the attempt of task %s has just ended", st.core.Name(i)))
		case st.flight.AttemptOf(i) == att, st.core.Task(i).Claim == claim && !v1.IsTaskTerminal(st.core.Task(i).State):
			st.flight.SetUnsure(att, att.IsUnsure() && !suspends)
			did()
		}
	})
	return s
}

// steerFailure explains to people that a node did not perform an action.
func steerFailure(name, node, action string, err error) error {
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return fmt.Errorf("node %s could not %s task %s: %s", node, action, name, app.Message())
	}
	return fmt.Errorf("node %s did not answer in time; it may yet %s task %s", node, action, name)
}

func (st *steering) taskPaused(i int, c *historyv1.TaskCommand) {
	st.fly(st.flight.Suspend(i, cmp.Or(phrase.Because(phrase.By("", c.GetBy()), c.GetReason()), "by a person")))
	st.logTask(i, v1.EventPaused, c)
}

func (st *steering) taskResumed(i int, c *historyv1.TaskCommand) {
	st.fly(st.flight.Suspend(i, ""))
	st.logTask(i, v1.EventResumed, c)
}

// taskStopped records who has stopped task i.
func (st *steering) taskStopped(i int, c *historyv1.TaskCommand) {
	st.status.SetSteeredBy(i, c.GetBy())
}

func (st *steering) taskRestarted(i int, c *historyv1.TaskCommand) {
	st.logTask(i, v1.EventRestarted, c)
}
