package run

import (
	"cmp"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
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

// steering is a pending request to the node of an attempt. Until the node has answered, the run does not continue as new and
// the caller gets no answer.
type steering struct {
	done bool
	err  error
}

// awaitSteering waits for the node's answer and returns its error. To the core, a suspended task is running.
func (r *run) awaitSteering(ctx workflow.Context, s *steering) error {
	if err := workflow.Await(ctx, func() bool { return s.done || r.refusal != nil }); err != nil {
		return err
	}
	if !s.done {
		return r.refusal
	}
	return s.err
}

// steer asks the node of task i's attempt for an action, and calls did when the node has performed it.
func (r *run) steer(i int, action string, did func()) *steering {
	s, att, claim := &steering{}, r.attempts[i], r.core.Task(i).Claim
	att.steered = true
	r.steerings++
	req := &v1.SteerRequest{RunId: r.id, Chain: r.chain, Task: r.core.Name(i), Claim: claim, Action: action}
	call := options.Steer(att.node, action+" "+r.core.Name(i))
	if action == actionRestart {
		call = options.Restart(att.node, action+" "+r.core.Name(i))
	}
	r.pending.Watch(r.startActivity(call, names.SteerActivity, req, 0), func(f workflow.Future) {
		r.steerings--
		att.steered, s.done = false, true
		var res v1.SteerResponse
		switch err := f.Get(r.ctx, &res); {
		case err != nil:
			// The node may have done it regardless. In that case the task can be resumed.
			att.unsure = att.unsure || action == actionPause || action == actionResume
			s.err = refuse(names.TaskStateError, steerFailure(r.core.Name(i), att.node, action, err))
		case res.GetRefused() != "":
			s.err = refuse(names.TaskStateError, fmt.Errorf("task %s: %s", r.core.Name(i), res.GetRefused()))
		case r.attempts[i] != att && action == actionPause:
			s.err = refuse(names.TaskStateError, fmt.Errorf("the attempt of task %s has just ended", r.core.Name(i)))
		case r.attempts[i] == att, r.core.Task(i).Claim == claim && !v1.IsTaskTerminal(r.core.Task(i).State):
			att.unsure = att.unsure && action != actionPause && action != actionResume
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

// mayPauseTask returns why task i cannot be suspended, or nil if it can.
func (r *run) mayPauseTask(i int) error {
	if err := r.maySteer(i); err != nil {
		return err
	}
	if r.status.Suspended(i) != "" {
		return fmt.Errorf("task %s is paused already", r.core.Name(i))
	}
	return nil
}

// mayResumeTask returns why task i cannot be resumed, or nil if it can.
func (r *run) mayResumeTask(i int) error {
	if att := r.attempts[i]; r.status.Suspended(i) == "" && (att == nil || !att.unsure) {
		if r.approvals[i] != nil {
			return fmt.Errorf("task %s waits for approval: it is approved or rejected, not resumed", r.core.Name(i))
		}
		return fmt.Errorf("task %s is %s; it is not paused by a person", r.core.Name(i), r.status.ShownState(i))
	}
	return r.maySteer(i)
}

// maySteerLasting returns why task i cannot be stopped or restarted, or nil if it can.
func (r *run) maySteerLasting(i int, action string) error {
	name, taskType := r.core.Name(i), r.core.Definition(i).GetType()
	att, state := r.attempts[i], r.core.Task(i).State
	_, instances := r.core.Instances(i)
	switch {
	case !v1.Lasts(taskType):
		return fmt.Errorf("task %s is of type %s, which ends by itself: %s is for tasks that run until they are stopped; cancel or kill it", name, taskType, action)
	case att == nil && v1.IsTaskWaiting(state) && instances == 0:
		return fmt.Errorf("task %s is not running (%s): cancel it", name, r.status.ShownState(i))
	case att != nil && att.isAway && action == actionStop:
		return nil
	case action == actionRestart && r.status.Suspended(i) != "":
		return fmt.Errorf("task %s is paused: resume it first", name)
	}
	return r.maySteer(i)
}

// maySteer returns why the node of task i cannot be asked for anything, or nil if it can.
func (r *run) maySteer(i int) error {
	name, rec, att := r.core.Name(i), r.core.Task(i), r.attempts[i]
	_, instances := r.core.Instances(i)
	switch {
	case v1.IsTaskTerminal(rec.State):
		return fmt.Errorf("task %s is %s; it has ended", name, rec.State)
	case rec.PendingEnd:
		return fmt.Errorf("task %s is being %s", name, endingWord(rec.Failure))
	case r.approvals[i] != nil:
		return fmt.Errorf("task %s waits for approval: nothing of it runs", name)
	case r.childRuns[i] != nil:
		return fmt.Errorf("task %s is a run of its own: pause or resume run %s", name, r.childRuns[i].id)
	case instances > 0 || r.partitionedOf(i) != nil:
		return fmt.Errorf("task %s is fanned out: name one of its instances, such as %s", name, names.InstanceName(name, 0))
	case att == nil:
		return fmt.Errorf("task %s is not running (%s): hold it with `switchyard runs hold`", name, r.status.ShownState(i))
	case att.isAway:
		return fmt.Errorf("task %s is lost until node %s is back; it can be stopped, cancelled or killed now", name, att.node)
	case att.steered:
		return fmt.Errorf("another request about task %s is under way; try again", name)
	}
	return nil
}

// endingWord returns the verb form for how a task is being ended.
func endingWord(f dag.Failure) string {
	if f.State == v1.TaskFailed { // its deadline has passed
		return "ended"
	}
	return f.State
}

func (r *run) taskPaused(i int, c *v1.TaskCommand) {
	r.status.SetSuspended(i, cmp.Or(phrase.Because(phrase.By("", c.GetBy()), c.GetReason()), "by a person"))
	r.logTask(i, v1.EventPaused, c)
}

func (r *run) taskResumed(i int, c *v1.TaskCommand) {
	r.status.SetSuspended(i, "")
	r.logTask(i, v1.EventResumed, c)
}
