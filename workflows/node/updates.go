package node

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
	"switchyard/workflows/policy"
)

// listen registers the handlers of the updates register, leave, restart, drain, undrain, terms and remove.
func (e *entry) listen(ctx workflow.Context) error {
	set := func(name string, handler, validator any) error {
		return workflow.SetUpdateHandlerWithOptions(ctx, name, handler, workflow.UpdateHandlerOptions{Validator: validator})
	}
	if err := set(names.RegisterUpdate, e.register, e.mayRegister); err != nil {
		return err
	}
	if err := set(names.LeaveUpdate, e.leave, nil); err != nil {
		return err
	}
	if err := set(names.RestartUpdate, e.restart, e.mayRestart); err != nil {
		return err
	}
	if err := set(names.DrainUpdate, e.drain, e.mayDrain); err != nil {
		return err
	}
	if err := set(names.UndrainUpdate, e.undrain, func(workflow.Context) error { return e.present() }); err != nil {
		return err
	}
	if err := set(names.TermsUpdate, e.setTerms, e.maySetTerms); err != nil {
		return err
	}
	return set(names.RemoveUpdate, e.remove, e.mayRemove)
}

// mayRegister accepts a worker if no other live worker has the name. A worker that registers again under its own incarnation is
// the same worker. A worker that has proven the registered incarnation dead replaces it. A restarting node is continued by a
// worker on its machine, where its attempts run.
func (e *entry) mayRegister(_ workflow.Context, reg *historyv1.NodeRegistration) error {
	old := e.record.GetRegistration()
	switch {
	case reg.GetName() != e.name || reg.GetIncarnation() == "":
		return stateError("registration of node %q as %q, incarnation %q: name and incarnation are required", reg.GetName(), e.name, reg.GetIncarnation())
	case e.removed:
		return stateError("node %s is being removed; register it again", e.name)
	case e.isRestarting() && reg.GetMachine() != old.GetMachine():
		return temporal.NewApplicationError(fmt.Sprintf("node %s restarts on machine %s, where its tasks run until %s at the latest; choose another name, or wait until then",
			e.name, cmp.Or(old.GetMachine(), "unknown"), e.record.GetRestartingUntil().AsTime().Format(time.RFC3339)), names.TakenError)
	case !e.live(), reg.GetIncarnation() == old.GetIncarnation(), reg.GetReplaces() != "" && reg.GetReplaces() == old.GetIncarnation():
		return nil
	}
	return temporal.NewApplicationError(fmt.Sprintf("node %s is already up on machine %s, in %s, since %s; choose another name or stop that worker",
		e.name, cmp.Or(old.GetMachine(), "unknown"), cmp.Or(old.GetProcess(), "an unknown process"), e.record.GetRegisteredAt().AsTime().Format(time.RFC3339)), names.TakenError)
}

// register registers a worker and returns the record, without the registration itself.
func (e *entry) register(ctx workflow.Context, reg *historyv1.NodeRegistration) (*historyv1.NodeRecord, error) {
	if reg.GetIncarnation() != e.record.GetRegistration().GetIncarnation() || e.record.GetRegisteredAt() == nil {
		e.record.RegisteredAt = timestamppb.New(workflow.Now(ctx))
	}
	e.record.Registration = reg
	e.record.Drained = false
	e.registrations++
	if drain := e.record.GetDrain(); drain != nil {
		e.become(ctx, v1.NodeDraining, phrase.Because(phrase.By("", drain.GetBy()), drain.GetReason()))
	} else {
		e.become(ctx, v1.NodeActive, "")
	}
	if err := e.save(ctx); err != nil {
		return nil, err
	}
	answer := proto.CloneOf(e.record)
	answer.Registration = nil
	return answer, nil
}

// leave takes a worker offline that has no running Heartbeat to end, because it was not picked up yet or was lost.
func (e *entry) leave(ctx workflow.Context, worker *historyv1.NodeInput) error {
	if !e.live() || worker.GetIncarnation() != e.record.GetRegistration().GetIncarnation() {
		return nil
	}
	e.become(ctx, v1.NodeOffline, names.NodeLeft)
	return e.save(ctx)
}

// mayRestart refuses the restart of a worker that is not registered, which another worker may have replaced.
func (e *entry) mayRestart(_ workflow.Context, r *historyv1.NodeRestart) error {
	if r.GetWait() == nil || r.GetIncarnation() != e.record.GetRegistration().GetIncarnation() || e.record.GetState() == v1.NodeOffline {
		return stateError("restart of node %s: incarnation %q is not registered", e.name, r.GetIncarnation())
	}
	return nil
}

// restart records that the registered worker has stopped, and that its attempts wait for the next one.
func (e *entry) restart(ctx workflow.Context, r *historyv1.NodeRestart) error {
	if e.isRestarting() {
		return nil
	}
	reason, until := "1 task runs on without the worker", ", until "
	if r.GetKept() != 1 {
		reason, until = fmt.Sprintf("%d tasks run on without the worker", r.GetKept()), ", the first until "
	}
	if r.GetFirst() != nil {
		reason += until + phrase.Clock(workflow.Now(ctx).Add(r.GetFirst().AsDuration()))
	}
	e.become(ctx, v1.NodeRestarting, reason)
	e.record.Kept = r.GetKept()
	e.record.RestartingUntil = timestamppb.New(workflow.Now(ctx).Add(r.GetWait().AsDuration()))
	return e.save(ctx)
}

// present returns an error unless the entry is registered and not being removed.
func (e *entry) present() error {
	if e.removed || e.record.GetRegistration() == nil {
		return stateError("node %s is not registered", e.name)
	}
	return nil
}

func (e *entry) mayDrain(_ workflow.Context, drain *historyv1.NodeDrain) error {
	if drain == nil {
		return stateError("drain of node %s: the request is missing", e.name)
	}
	return e.present()
}

// drain also applies to an offline node, which then comes back draining. A drain without a reason keeps the reason and the
// author of the previous drain.
func (e *entry) drain(ctx workflow.Context, drain *historyv1.NodeDrain) error {
	if before := e.record.GetDrain(); before.GetReason() != "" && drain.GetReason() == "" {
		drain.Reason, drain.By = before.GetReason(), before.GetBy()
	}
	if sameDrain(e.record.GetDrain(), drain) {
		return nil
	}
	e.record.Drain, e.record.Drained = drain, false
	if e.live() {
		e.become(ctx, v1.NodeDraining, phrase.Because(phrase.By("", drain.GetBy()), drain.GetReason()))
	}
	return e.save(ctx)
}

// sameDrain reports whether two drains are equal. It avoids reflection, which workflow code may not use.
func sameDrain(a, b *historyv1.NodeDrain) bool {
	return a != nil && a.GetReason() == b.GetReason() &&
		(a.Deadline == nil) == (b.Deadline == nil) && a.GetDeadline().AsTime().Equal(b.GetDeadline().AsTime())
}

func (e *entry) undrain(ctx workflow.Context) error {
	if e.record.GetDrain() == nil {
		return nil
	}
	e.record.Drain, e.record.Drained = nil, false
	if e.live() {
		e.become(ctx, v1.NodeActive, "")
	}
	return e.save(ctx)
}

// maySetTerms refuses requests that set nothing, and terms for a worker that knows none.
func (e *entry) maySetTerms(_ workflow.Context, change *historyv1.NodeTermsChange) error {
	if !change.GetClear() && proto.Size(change.GetTerms()) == 0 {
		return stateError("terms of node %s: the request sets and clears nothing", e.name)
	}
	if err := e.present(); err != nil {
		return err
	}
	if e.record.GetRegistration().GetSnapshot().GetTerms() == nil {
		return stateError("the worker of node %s is too old to change its terms; start it with the version of the gateways", e.name)
	}
	return nil
}

// setTerms also applies to an offline node, which then comes back with these terms.
func (e *entry) setTerms(ctx workflow.Context, change *historyv1.NodeTermsChange) error {
	before := e.record.GetTerms()
	if change.GetClear() {
		before = nil
	}
	e.record.Terms = policy.ChangeTerms(before, change.GetTerms())
	return e.save(ctx)
}

func (e *entry) mayRemove(workflow.Context) error {
	if e.record.GetState() != v1.NodeOffline {
		remedy := "stop its worker first"
		if e.isRestarting() {
			remedy = "it is if its worker does not come back by " + e.record.GetRestartingUntil().AsTime().Format(time.RFC3339)
		}
		return stateError("node %s is %s; only a node that is offline can be removed: %s", e.name, e.record.GetState(), remedy)
	}
	return nil
}

func (e *entry) remove(workflow.Context) error {
	e.removed = true
	return nil
}

func stateError(format string, args ...any) error {
	return temporal.NewApplicationError(fmt.Sprintf(format, args...), names.StateError)
}
