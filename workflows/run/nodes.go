package run

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/core/dataflow"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// sendLockRequests sends the queued lock requests, in one call a round.
func (r *run) sendLockRequests() {
	if !r.flight.HasLockRequests() {
		return
	}
	req := &historyv1.LockRequests{Requests: r.flight.TakeLockRequests()}
	switch err := r.calls.MustNow("ask for locks", names.AskLocksActivity, nil, req); {
	case errors.Is(err, calls.ErrInterrupted):
		r.flight.PutBackLockRequests(req.Requests)
	case err != nil:
		workflow.GetLogger(r.ctx).Error("could not send lock requests", "error", err)
	}
}

// place updates the placement queue, in one call a round, and applies its answer.
func (r *run) place() {
	for {
		req := r.flight.PlaceRequest(r.draining)
		if req == nil {
			return
		}
		r.calls.Charge(calls.CommandCharge * len(req.Requests))
		var res historyv1.PlaceResponse
		if err := r.calls.Try("ask for nodes", names.PlaceActivity, &res, req); err != nil {
			r.flight.PlaceFailed()
			r.calls.After(options.PlacementPause, "ask placement again", func() { r.flight.EndPause(); r.place() })
			return
		}
		if !r.draining { // otherwise the answer does not matter
			r.calls.Charge(calls.CommandCharge * max(0, len(res.GetAssigned())+len(res.GetWaiting())-len(req.Requests))) // already charged with the request
		}
		r.fly(r.flight.PlaceAnswered(req, &res, r.draining))
		if r.draining {
			return
		}
		if !r.flight.HasRequests() {
			break
		}
	}
	r.awaitPlacement()
}

// awaitPlacement waits in the background for news from the placement queue.
func (r *run) awaitPlacement() {
	req := r.flight.AwaitPlacement(r.draining)
	if req == nil {
		return
	}
	future := r.calls.Activity(options.AwaitPlacement(), names.AwaitPlacementActivity, req, 0)
	r.calls.Watch(future, func(f workflow.Future) {
		r.flight.EndAwait()
		if r.draining {
			return
		}
		var res historyv1.PlaceResponse
		if err := f.Get(r.ctx, &res); err != nil {
			workflow.GetLogger(r.ctx).Warn("waiting for a node failed", "error", err)
			res.Resync = true
		}
		r.fly(r.flight.News(&res))
		if res.GetResync() {
			r.flight.RequestAll()
			r.place()
		}
		r.awaitPlacement()
	})
}

// dispatch starts the attempts of units that have been given a node.
func (r *run) dispatch() {
	for {
		u := r.flight.NextDispatch()
		if u == nil {
			return
		}
		req, err := build(r, func(d *dataflow.Draft) (*historyv1.ExecuteRequest, *dataflow.Call) {
			return d.ExecuteRequest(u, r.now())
		})
		if err != nil {
			r.flight.PutBack(u)
			r.wake()
			return
		}
		if err := limits.CheckSize(req); err != nil {
			r.fly(r.flight.Unsendable(u, err.Error()))
			continue
		}
		r.flight.Dispatched(u)
		r.execute(u, req)
	}
}

// execute starts the activity that begins or reattaches the attempt of a unit and waits for it.
func (r *run) execute(u *flight.Unit, req *historyv1.ExecuteRequest) {
	name, priority := r.core.Name(u.Members[0]), r.core.Definition(u.Lead).GetPriority()
	options := options.Execute(req, name, u.Assignment.GetQueue(), priority, r.Input.GetOptions())
	options.HeartbeatTimeout = r.flight.Silence(u)
	if lease := r.flight.MaxLease(u); lease > 0 {
		req.MaxLease = durationpb.New(lease)
	}
	options.ScheduleToStartTimeout = max(options.ScheduleToStartTimeout, u.LeaseUntil.Sub(r.now()))
	r.startFor(u, options, names.ExecuteActivity, req, dataflow.Written(req), func(f workflow.Future) {
		r.fly(r.flight.Answered(u, attemptAnswer(r.ctx, f), r.now()))
	})
}

// reserve asks the node of a member of a gang to reserve its place.
func (r *run) reserve(u *flight.Unit) {
	options := options.Reserve(u.Node, r.core.Name(u.Lead))
	r.calls.Watch(r.calls.Activity(options, names.ReserveActivity, r.data.ReserveRequest(u, false), 0), func(f workflow.Future) {
		var res historyv1.ReserveResponse
		err := f.Get(r.ctx, &res)
		if err != nil {
			workflow.GetLogger(r.ctx).Debug("could not reserve a place", "node", u.Node, "task", r.core.Name(u.Lead), "error", err)
		}
		r.fly(r.flight.Reserved(u, &res, err == nil))
	})
}

// giveUp asks the node of a member of a gang to keep its place no more. A node that does not answer gives the place up by itself, later.
func (r *run) giveUp(u *flight.Unit) {
	options := options.GiveUp(u.Node, r.core.Name(u.Lead))
	answer := r.calls.Activity(options, names.ReserveActivity, r.data.ReserveRequest(u, true), 0)
	r.givenUp = append(slices.DeleteFunc(r.givenUp, workflow.Future.IsReady), answer)
}

// awaitGivenUp waits until nodes have been asked to give places up: Temporal drops the activities of an execution that has ended.
func (r *run) awaitGivenUp() {
	for _, answer := range r.givenUp {
		_ = answer.Get(r.ctx, nil)
	}
	r.givenUp = nil
}

// startFor starts an activity about the attempt of a unit, which the effect Cancel cancels.
func (r *run) startFor(u *flight.Unit, options workflow.ActivityOptions, name string, req any, written int, answered func(workflow.Future)) {
	ctx, cancel := workflow.WithCancel(r.ctx)
	r.cancels[u] = cancel
	r.calls.Watch(r.calls.ActivityWith(ctx, options, name, req, written), func(f workflow.Future) {
		cancel()
		answered(f)
		if u.Phase == flight.Gone {
			delete(r.cancels, u)
		}
	})
}

// actionFind is the SteerRequest.action that looks for an attempt.
const actionFind = "find"

// find asks the node of an attempt that is away for the attempt.
func (r *run) find(u *flight.Unit) {
	i := u.Members[0]
	name := r.core.Name(i)
	req := &historyv1.SteerRequest{RunId: r.RunID, Chain: r.Chain, Task: name, Claim: r.core.Task(i).Claim, Action: actionFind}
	r.startFor(u, options.Find(u.Node, name), names.SteerActivity, req, 0, func(f workflow.Future) {
		var res historyv1.SteerResponse
		if err := f.Get(r.ctx, &res); err != nil {
			workflow.GetLogger(r.ctx).Debug("could not ask a node for an attempt", "node", u.Node, "task", name, "error", err)
			r.fly(r.flight.NotFound(u))
			return
		}
		r.fly(r.flight.Found(u, res.GetRefused() == ""))
	})
}

// awaitRecord waits until the node of a lost attempt has delivered all its records.
func (r *run) awaitRecord(e flight.AwaitRecord) {
	u := e.Unit
	name := r.core.Name(u.Members[0])
	req := &historyv1.AwaitAnswerRequest{Attempt: r.data.AttemptRequest(u), HeartbeatTimeout: durationpb.New(e.Silence), Retried: e.Retried}
	req.Attempt.Reattach = true
	r.startFor(u, options.AwaitAnswer(name, req.Attempt), names.AwaitAnswerActivity, req, dataflow.Written(req.Attempt), func(f workflow.Future) {
		recorded := &historyv1.ExecuteResponse{}
		err := f.Get(r.ctx, recorded)
		if _, away := errors.AsType[*temporal.ApplicationError](err); away {
			r.calls.Watch(r.calls.AwaitStore("look for the result of "+name, err), func(workflow.Future) {
				r.calls.Succeeded()
				r.fly(r.flight.Settle(u, e.Answer, r.now()))
			})
			return
		}
		if err != nil {
			recorded = nil
		}
		r.fly(r.flight.Recorded(u, e.Answer, recorded))
	})
}

// detach asks a node to detach attempts.
func (r *run) detach(node string, req *historyv1.DetachRequest) {
	options := options.Detach(node, r.Limits.DetachedLease/leaseShare)
	r.calls.Activity(options, names.DetachActivity, req, dataflow.MemberCharge*len(req.GetAttempts()))
}

// loadProgress returns what a heartbeat tells about the members of a batch: its content, and the record that it names.
func (r *run) loadProgress(beat *historyv1.ExecuteProgress) *historyv1.ExecuteResponse {
	res := &historyv1.ExecuteResponse{AssignedAt: beat.GetStartedAt(), Batch: beat.GetBatch()}
	if key := beat.GetRecord(); key != "" {
		if err := r.calls.MustNow("load the ended members of a batch", names.LoadProgressActivity, res, key); err != nil {
			workflow.GetLogger(r.ctx).Warn("could not read the ended members of a batch", "record", key, "error", err)
		}
	}
	res.Checkpoint = beat.GetCheckpoint()
	return res
}

// findSilent looks for silent nodes. An answer that fails counts as none.
func (r *run) findSilent(nodes []string) {
	r.calls.Watch(r.calls.Once("look for silent nodes", names.SilentNodesActivity, &historyv1.SilentNodesRequest{Nodes: nodes}), func(f workflow.Future) {
		var res historyv1.SilentNodesResponse
		if err := f.Get(r.ctx, &res); err != nil {
			workflow.GetLogger(r.ctx).Debug("could not look for silent nodes", "error", err)
		}
		since := map[string]time.Time{}
		//workflowcheck:ignore (into a map again)
		for node, at := range res.GetSince() {
			since[node] = at.AsTime()
		}
		r.fly(r.flight.FoundSilent(since))
	})
}

// saveCached writes queued results to the cache.
func (r *run) saveCached() {
	if len(r.uncached) == 0 {
		return
	}
	var saved []workflow.Future
	for _, end := range r.uncached {
		saved = append(saved, r.calls.Once("keep results for later runs", names.SaveCachedActivity, r.data.CachedResult(end, r.now())))
	}
	r.uncached = nil
	for _, f := range saved {
		if err := f.Get(r.ctx, nil); err != nil {
			workflow.GetLogger(r.ctx).Warn("could not keep a result for later runs", "error", err)
		}
	}
}
