package run

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

var (
	errNotBegun   = errors.New("the run has not begun; try again")
	errContinuing = errors.New("the run is continuing as new; try again")
)

// request is an update that the main loop carries out between two rounds. Its handler then answers the person.
type request struct {
	update  command.Update
	command *historyv1.TaskCommand
	invalid string // why its decision does not count, or ""
	done    bool
	err     error
}

// handleUpdates registers the handlers of all updates.
func (r *run) handleUpdates() error {
	for _, u := range command.Updates {
		var err error
		switch u.Argument {
		case command.ForRun:
			err = handleUpdate[*historyv1.RunCommand](r, u)
		case command.ForDeadLetter:
			err = handleUpdate[*historyv1.RetryTaskRequest](r, u)
		default:
			err = handleUpdate[*historyv1.TaskCommand](r, u)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// handleUpdate registers the handler of an update with an argument of type C. Before the run has begun the handler accepts every
// command, because it is checked again when it is carried out. When the execution is about to have received as many updates as
// Temporal accepts, the handler refuses all until the run has continued as new. An update that an earlier execution has carried out
// changes nothing; Temporal recognizes those of this one.
func handleUpdate[C any](r *run, u command.Update) error {
	handle := func(ctx workflow.Context, c C) error {
		r.updates++
		id := workflow.GetCurrentUpdateInfo(ctx).ID
		if r.commands.HasCarriedOut(id) {
			return nil
		}
		err := r.handle(ctx, &request{update: u, command: command.CommandOf(c)})
		if err == nil {
			r.commands.AddCarriedOut(id)
		}
		return err
	}
	validate := func(ctx workflow.Context, c C) error {
		switch {
		case r.updates >= r.Limits.LastUpdates:
			return refuse(names.RunContinuingError, errContinuing)
		case r.core == nil, r.commands.HasCarriedOut(workflow.GetCurrentUpdateInfo(ctx).ID):
			return nil
		case u.Action != "" && r.steering >= r.Limits.NodeRequests:
			return refuse(names.TaskStateError, fmt.Errorf("%d requests to nodes of this run have no answer yet; try again", r.steering))
		}
		return refusal(r.commands.Check(u, command.CommandOf(c)))
	}
	return workflow.SetUpdateHandlerWithOptions(r.root, u.Name, handle, workflow.UpdateHandlerOptions{Description: u.Description, Validator: validate})
}

// handle has the main loop carry out an update, and returns its answer. It refuses a command that comes too late. Retries are
// carried out at once.
func (r *run) handle(ctx workflow.Context, q *request) error {
	if r.core != nil && r.core.HasFinally() {
		ctx, _ = workflow.NewDisconnectedContext(ctx) // a cancellation by Temporal lasts, and `finally` runs after it
	}
	isRetry, isDecision := q.update.Argument == command.ForDeadLetter, q.update.Verdict != ""
	if isRetry || isDecision { // the run's input states whether people log in
		if err := workflow.Await(ctx, func() bool { return r.core != nil || r.refusal != nil }); err != nil {
			return err
		}
	}
	switch {
	case r.refusal != nil:
	case isRetry && r.commands.Check(q.update, q.command) == nil && r.cancelRequested() && !r.core.InFinally(): // a validator may not check this
		return refuse(names.TaskStateError, dag.ErrCancelled)
	case isRetry:
		r.carryOut(q)
		return q.err
	case isDecision && r.Input.GetSignedDecisions():
		var err error
		if q.invalid, err = r.verify(ctx, q); err != nil {
			return err
		}
	case q.update.Action != "":
		r.steering++
		defer func() { r.steering-- }()
	}
	if r.refusal != nil {
		return r.refusal
	}
	r.queue = append(r.queue, q)
	if err := workflow.Await(ctx, func() bool { return q.done || r.refusal != nil }); err != nil {
		return err
	}
	if !q.done {
		return r.refusal
	}
	return q.err
}

// verify returns why a decision does not count, or "" if it does. Where people log in, only a decision counts that a gateway has
// signed for this task of this execution.
func (r *run) verify(ctx workflow.Context, q *request) (why string, err error) {
	d := q.command.GetDecision()
	meant := &historyv1.Decision{Workflow: r.Self, Execution: r.First, Task: q.command.GetTask(), Verdict: q.update.Verdict}
	if why := command.Misdirected(d, meant); why != "" {
		return why, nil
	}
	var res historyv1.VerifyResponse
	verifying := workflow.WithLocalActivityOptions(ctx, options.Must("verify who has decided", 0))
	if err := workflow.ExecuteLocalActivity(verifying, names.VerifyDecisionActivity, &historyv1.VerifyRequest{Decision: d}).Get(ctx, &res); err != nil {
		return "", refuse(names.TaskStateError, errors.New("the signature of the decision cannot be verified now; try again: "+calls.CauseOf(err)))
	}
	return res.GetRefused(), nil
}

// obey carries out the queued updates.
func (r *run) obey() {
	for len(r.queue) > 0 {
		q := r.queue[0]
		r.queue = r.queue[1:]
		r.carryOut(q)
	}
}

// carryOut carries out an update. One that needs a node is done when the node has answered. A decision that does not count is
// logged as an event of the run.
func (r *run) carryOut(q *request) {
	if q.invalid != "" {
		r.logRefused(q.command.GetTask(), q.update.Verdict, q.command.GetBy(), q.invalid)
		q.done, q.err = true, refuse(names.TaskStateError, fmt.Errorf("the decision is not valid: %s", q.invalid))
		return
	}
	effects, steer, refused := r.commands.Do(q.update, q.command, r.now())
	r.carryOutCommand(effects)
	if steer != nil {
		r.steer(q, steer)
		return
	}
	q.done, q.err = true, refusal(refused)
}

// refuseUpdates refuses all queued and later updates, because the main loop has ended. It returns when every update has its answer.
func (r *run) refuseUpdates(kind string, why error) {
	r.refusal = refuse(kind, why)
	r.awaitHandlers()
}

// awaitHandlers waits until every update has its answer.
func (r *run) awaitHandlers() {
	// The only error is a cancelled context, and ctx is never cancelled.
	_ = workflow.Await(r.ctx, func() bool { return workflow.AllHandlersFinished(r.ctx) })
}

func refuse(kind string, err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), kind, nil)
}

// refusal returns the error of an update that is refused, or nil if it is not.
func refusal(r *command.Refusal) error {
	if r == nil {
		return nil
	}
	return refuse(r.Kind, r)
}
