package node

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Registrar has the workflow Node. A field that is zero has its default.
type Registrar struct {
	// ForgetAfter is how long a node may be offline before its entry goes; 7 days.
	ForgetAfter time.Duration
	// HistoryEvents is the size of the history after which the entry continues in a fresh one; 2,000.
	HistoryEvents int
}

// Node is the registry entry of a name. The package comment has its states.
//
// The node's NodeRecord is in the workflow's memo. While a worker is registered,
// the activity Heartbeat runs on its machine and beats with NodeSnapshots.
func (r Registrar) Node(ctx workflow.Context, in *v1.NodeInput) error {
	e := &entry{
		Registrar: Registrar{
			ForgetAfter:   cmp.Or(r.ForgetAfter, 7*24*time.Hour),
			HistoryEvents: cmp.Or(r.HistoryEvents, 2000),
		},
		name:   in.GetName(),
		record: in.GetRecord(),
	}
	if e.record == nil {
		e.record = &v1.NodeRecord{Name: e.name, State: v1.NodeOffline, Reason: "not registered yet", StateSince: timestamppb.New(workflow.Now(ctx))}
	}
	if err := e.listen(ctx); err != nil {
		return err
	}
	return e.keep(ctx)
}

// strayPause is the wait before a Heartbeat is offered again that the wrong worker has taken.
const strayPause = 200 * time.Millisecond

// entry is the state of a workflow Node.
type entry struct {
	Registrar
	name   string
	record *v1.NodeRecord
	// registrations counts those that this execution has taken: a worker that registers again gets a new Heartbeat.
	registrations int
	removed       bool
}

// live reports whether a worker is registered and has not been lost.
func (e *entry) live() bool { return e.record.GetState() != v1.NodeOffline }

// keep carries the entry until it is forgotten.
func (e *entry) keep(ctx workflow.Context) error {
	for ctx.Err() == nil {
		// Nothing is under way here, so that a fresh history has nothing to take over.
		if e.tooLong(ctx) {
			if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
				return err
			}
			return workflow.NewContinueAsNewError(ctx, names.NodeWorkflow, &v1.NodeInput{Name: e.name, Record: e.record})
		}
		if e.live() {
			if err := e.attend(ctx); err != nil {
				return err
			}
			continue
		}
		if forgotten, err := e.rest(ctx); err != nil || forgotten {
			return err
		}
	}
	return ctx.Err()
}

func (e *entry) tooLong(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.GetCurrentHistoryLength() >= e.HistoryEvents || info.GetContinueAsNewSuggested()
}

// attend has the registered worker beat, and returns when it has ended, was lost,
// or has registered again.
func (e *entry) attend(ctx workflow.Context) error {
	registration := e.registrations
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	after := offlineAfter(e.record.GetRegistration())
	heartbeat := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, heartbeatOptions(e.name, after)),
		names.HeartbeatActivity, &v1.NodeInput{Name: e.name, Incarnation: e.record.GetRegistration().GetIncarnation()})
	workflow.Go(ctx, e.order)
	if err := workflow.Await(ctx, func() bool { return heartbeat.IsReady() || e.registrations != registration || !e.live() }); err != nil {
		return err
	}
	if e.registrations != registration || !e.live() {
		return nil
	}
	reason := names.NodeLeft
	if err := heartbeat.Get(ctx, nil); err != nil {
		if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.Type() == names.OtherIncarnationError {
			return workflow.Sleep(ctx, strayPause) // and once more
		}
		reason = "its heartbeat failed: " + err.Error()
		if _, lost := errors.AsType[*temporal.TimeoutError](err); lost {
			reason = fmt.Sprintf("no beat for %s", after)
		}
	}
	e.become(ctx, v1.NodeOffline, reason)
	return e.save(ctx)
}

// order has the worker do what the record says about draining. Only one order is
// under way at a time, so that they cannot overtake each other.
func (e *entry) order(ctx workflow.Context) {
	ctx = workflow.WithActivityOptions(ctx, orderOptions(e.name, offlineAfter(e.record.GetRegistration())))
	var told *v1.NodeDrain // nil: it is in service, as every worker is that has just registered
	for {
		if workflow.Await(ctx, func() bool { return e.record.GetDrain() != told }) != nil {
			return
		}
		told = e.record.GetDrain()
		if told == nil {
			if err := workflow.ExecuteActivity(ctx, names.UndrainActivity).Get(ctx, nil); err != nil {
				workflow.GetLogger(ctx).Warn("the node was not put back into service", "error", err)
			}
			continue
		}
		drainCtx, cancel := workflow.WithCancel(ctx)
		drained := workflow.ExecuteActivity(drainCtx, names.DrainActivity, told)
		if workflow.Await(ctx, func() bool { return drained.IsReady() || e.record.GetDrain() != told }) != nil {
			cancel()
			return
		}
		cancel()
		if err := drained.Get(ctx, nil); err != nil || e.record.GetDrain() != told {
			continue // undrained; the node has stopped waiting for its last attempt
		}
		e.record.Drained = true
		if err := e.save(ctx); err != nil {
			workflow.GetLogger(ctx).Warn("the node's record was not kept", "error", err)
		}
	}
}

// rest waits while no worker is registered. It reports whether the entry is to go.
func (e *entry) rest(ctx workflow.Context) (forgotten bool, err error) {
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	left := e.ForgetAfter - workflow.Now(ctx).Sub(e.record.GetStateSince().AsTime())
	timer := workflow.NewTimerWithOptions(ctx, max(left, time.Second), workflow.TimerOptions{Summary: "forget the node"})
	if err := workflow.Await(ctx, func() bool { return e.live() || e.removed || timer.IsReady() }); err != nil {
		return false, err
	}
	if e.live() {
		return false, nil
	}
	e.removed = true // no worker registers here any more
	return true, workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// become notes a state and since when.
func (e *entry) become(ctx workflow.Context, state, reason string) {
	if e.record.GetState() != state {
		e.record.StateSince = timestamppb.New(workflow.Now(ctx))
	}
	e.record.State, e.record.Reason = state, reason
}

// save puts the record where readers find it.
func (e *entry) save(ctx workflow.Context) error {
	return workflow.UpsertMemo(ctx, map[string]any{names.NodeMemo: e.record})
}
