package node

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Registrar is the workflow Node with its settings. A zero field means its default.
type Registrar struct {
	// ForgetAfter is how long a node may be offline before its entry is removed; default 7 days.
	ForgetAfter time.Duration
	// HistoryEvents is the history length after which the entry continues as new; default 2,000.
	HistoryEvents int
}

// Node maintains the registry entry for a name. The package comment shows its states.
//
// The NodeRecord of the node is in the workflow's memo. While a worker is registered, the activity Heartbeat runs on its
// machine and sends NodeSnapshots.
func (r Registrar) Node(ctx workflow.Context, in *historyv1.NodeInput) error {
	e := &entry{
		Registrar: Registrar{
			ForgetAfter:   cmp.Or(r.ForgetAfter, 7*24*time.Hour),
			HistoryEvents: cmp.Or(r.HistoryEvents, 2000),
		},
		name:   in.GetName(),
		record: in.GetRecord(),
	}
	if e.record == nil {
		e.record = &historyv1.NodeRecord{Name: e.name, State: v1.NodeOffline, Reason: "not registered yet", StateSince: timestamppb.New(workflow.Now(ctx))}
	}
	if err := e.listen(ctx); err != nil {
		return err
	}
	return e.keep(ctx)
}

// strayPause is the wait before a Heartbeat is scheduled again after the wrong worker has taken it.
const strayPause = 200 * time.Millisecond

// entry is the state of a workflow Node.
type entry struct {
	Registrar
	name   string
	record *historyv1.NodeRecord
	// registrations is the number of registrations in this execution. A worker that registers again gets a new Heartbeat.
	registrations int
	removed       bool
}

// live reports whether a worker is registered that has neither stopped nor been lost.
func (e *entry) live() bool { return e.record.GetState() != v1.NodeOffline && !e.isRestarting() }

// isRestarting reports whether a worker has stopped and left attempts for the next one.
func (e *entry) isRestarting() bool { return e.record.GetState() == v1.NodeRestarting }

// keep maintains the entry until it is forgotten.
func (e *entry) keep(ctx workflow.Context) error {
	for ctx.Err() == nil {
		// Nothing is in flight here, so a new execution has nothing to take over.
		if e.tooLong(ctx) {
			if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
				return err
			}
			return workflow.NewContinueAsNewError(ctx, names.NodeWorkflow, &historyv1.NodeInput{Name: e.name, Record: e.record})
		}
		if e.live() {
			if err := e.attend(ctx); err != nil {
				return err
			}
			continue
		}
		if e.isRestarting() {
			if err := e.awaitRestart(ctx); err != nil {
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

// attend keeps the Heartbeat of the registered worker running. It returns when the worker has stopped, was lost, or has
// registered again, and when drains or signals have made the history too long: the next execution has a Heartbeat of its own.
func (e *entry) attend(ctx workflow.Context) error {
	registration := e.registrations
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	after := offlineAfter(e.record.GetRegistration())
	heartbeat := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, heartbeatOptions(e.name, after)),
		names.HeartbeatActivity, &historyv1.NodeInput{Name: e.name, Incarnation: e.record.GetRegistration().GetIncarnation()})
	workflow.Go(ctx, e.order)
	workflow.Go(ctx, e.orderTerms)
	if err := workflow.Await(ctx, func() bool {
		return heartbeat.IsReady() || e.registrations != registration || !e.live() || e.tooLong(ctx)
	}); err != nil {
		return err
	}
	if e.registrations != registration || !e.live() || !heartbeat.IsReady() {
		return nil
	}
	reason := names.NodeLeft
	if err := heartbeat.Get(ctx, nil); err != nil {
		if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.Type() == names.OtherIncarnationError {
			return workflow.Sleep(ctx, strayPause) // then the loop tries again
		}
		reason = "its heartbeat failed: " + err.Error()
		if _, lost := errors.AsType[*temporal.TimeoutError](err); lost {
			reason = fmt.Sprintf("no heartbeat for %s", after)
		}
	}
	e.become(ctx, v1.NodeOffline, reason)
	return e.save(ctx)
}

// order makes the worker drain or undrain, as in the record. Only one order is in flight at a time, so that orders cannot
// overtake each other.
func (e *entry) order(ctx workflow.Context) {
	ctx = workflow.WithActivityOptions(ctx, orderOptions(e.name, offlineAfter(e.record.GetRegistration())))
	var told *historyv1.NodeDrain // nil while in service, as every newly registered worker is
	for {
		if workflow.Await(ctx, func() bool { return e.record.GetDrain() != told }) != nil {
			return
		}
		told = e.record.GetDrain()
		if told == nil {
			if err := workflow.ExecuteActivity(ctx, names.UndrainActivity).Get(ctx, nil); err != nil {
				workflow.GetLogger(ctx).Warn("could not put the node back into service", "error", err)
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
			continue // undrained; the node no longer waits for its last attempt
		}
		e.record.Drained = true
		if err := e.save(ctx); err != nil {
			workflow.GetLogger(ctx).Warn("could not save the record of the node", "error", err)
		}
	}
}

// orderTerms gives the worker the terms that are set at run time, as in the record. Terms that this execution has taken over may not
// have arrived.
func (e *entry) orderTerms(ctx workflow.Context) {
	opts := orderOptions(e.name, offlineAfter(e.record.GetRegistration()))
	opts.Summary = "terms of node " + e.name
	ctx = workflow.WithActivityOptions(ctx, opts)
	var told *v1.NodeTerms
	for workflow.Await(ctx, func() bool { return e.record.GetTerms() != told }) == nil {
		told = e.record.GetTerms()
		if err := workflow.ExecuteActivity(ctx, names.TermsActivity, told).Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Warn("could not set the terms of the node", "error", err)
		}
	}
}

// awaitRestart waits for the next worker of the node. The node is offline if none registers in time.
func (e *entry) awaitRestart(ctx workflow.Context) error {
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	until := e.record.GetRestartingUntil().AsTime()
	timer := workflow.NewTimerWithOptions(ctx, max(until.Sub(workflow.Now(ctx)), time.Second), workflow.TimerOptions{Summary: "await the next worker of the node"})
	if err := workflow.Await(ctx, func() bool { return !e.isRestarting() || timer.IsReady() }); err != nil {
		return err
	}
	if !e.isRestarting() {
		return nil
	}
	e.become(ctx, v1.NodeOffline, "its worker did not come back from a restart")
	return e.save(ctx)
}

// rest waits while no worker is registered. It returns true if the entry is to be removed.
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
	e.removed = true // no worker can register here any more
	return true, workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// become sets the state, the reason, and the time since which the state holds.
func (e *entry) become(ctx workflow.Context, state, reason string) {
	if e.record.GetState() != state {
		e.record.StateSince = timestamppb.New(workflow.Now(ctx))
	}
	e.record.State, e.record.Reason = state, reason
	e.record.RestartingUntil, e.record.Kept = nil, 0
}

// save writes the record to the memo, where readers find it.
func (e *entry) save(ctx workflow.Context) error {
	return workflow.UpsertMemo(ctx, map[string]any{names.NodeMemo: e.record})
}
