package explanation

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"switchyard/gateway/runevents"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"
)

// explainer explains the placement of tasks.
type explainer struct {
	index  *runindex.Index
	reader *runview.Reader
	events *runevents.Reader
	queue  queue
	now    func() time.Time
	log    *slog.Logger
}

// ExplainTask explains the placement of a task: how the placement queue rates each node for it now, and, once it has
// been placed, why it was placed on its node.
func (e explainer) ExplainTask(ctx context.Context, req *connect.Request[v1.ExplainTaskRequest]) (*connect.Response[v1.ExplainTaskResponse], error) {
	id, err := e.index.Resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	v, err := e.reader.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	name := req.Msg.GetTask()
	about, err := e.reader.TaskRef(ctx, v, name)
	if err != nil {
		return nil, err
	}
	t := about.Brief()
	state := t.GetState()
	res := &v1.ExplainTaskResponse{Task: name, State: state}
	ended := v1.HasTaskEnded(t)
	said := &historyv1.ExplainResponse{}
	if v1.NeedsNode(t.GetType()) && !endedUnplaced(t) {
		said, err = e.explainTask(ctx, id, about)
	}
	if err != nil && !ended {
		return nil, err
	}
	if err != nil {
		e.log.Debug("the placement queue cannot explain a task", "run", id, "task", name, "error", err)
	}
	res.Nodes = said.GetNodes()
	if v1.IsTaskWaiting(state) {
		res.Chosen, res.Reason = said.GetChosen(), said.GetReason()
		if waits := waitsFor(v, t); waits != "" {
			res.Reason = waits
		} else if state == v1.TaskQueued && !said.GetHeld() && t.GetError() != "" {
			res.Reason = t.GetError() // it waits in the run, for a lock or a free slot
		}
		if res.Reason == "" {
			res.Reason = t.GetError()
		}
	} else {
		res.Chosen = t.GetNode()
		if res.Reason, err = e.events.LastDetail(ctx, v, name, v1.EventAssigned); err != nil {
			return nil, err
		}
		if t.Count != nil && !ended {
			res.Reason = t.GetError() // a fan-out may wait too, such as for a slot to open child workflows
		}
		if res.Reason == "" && !ended && (t.Count == nil || hasWaitingInstances(t)) {
			res.Reason = said.GetReason()
		}
		if res.Reason == "" && res.Chosen == "" {
			res.Reason = t.GetError()
		}
	}
	res.Parents = parentEnds(v, about)
	res.Reason = strings.Join(slices.DeleteFunc(append([]string{res.Reason}, e.explainNotes(ctx, v, about)...), func(note string) bool { return note == "" }), "; ")
	return connect.NewResponse(res), nil
}

// hasWaitingInstances reports whether an instance of a fan-out waits to start.
func hasWaitingInstances(t *v1.Task) bool {
	for state, n := range t.GetCounts() {
		if n > 0 && v1.IsTaskWaiting(state) {
			return true
		}
	}
	return false
}

// endedUnplaced reports whether a task ended for a reason unrelated to nodes.
func endedUnplaced(t *v1.Task) bool {
	return v1.IsTaskTerminal(t.GetState()) && t.GetNode() == "" && t.GetReason() != v1.ReasonPlacementTimeout && t.GetReason() != v1.ReasonNoSession
}

// parentEnds returns how the parents of a task ended if their ends, or what its condition read of them, kept it from
// starting.
func parentEnds(v *runview.View, about runview.TaskRef) (ends []*v1.ParentEnd) {
	t := about.Brief()
	switch t.GetReason() {
	case v1.ReasonUpstream, v1.ReasonWhen, v1.ReasonCondition, v1.ReasonConditionError:
	default:
		return nil
	}
	for _, name := range t.GetDependsOn() {
		if p := v.Tasks[name]; p != nil {
			ends = append(ends, &v1.ParentEnd{Task: name, State: p.Brief.GetState(), Reason: phrase.Because(p.Brief.GetReason(), p.Brief.GetError())})
		}
	}
	return ends
}

// explainNotes returns further notes on the placement of a task: what holds it up on its node, how it ended there, and
// why it was moved off the previous node.
func (e explainer) explainNotes(ctx context.Context, v *runview.View, about runview.TaskRef) []string {
	t := about.Brief()
	notes := append([]string{t.GetNotice()}, e.holderNotes(ctx, t)...)
	if until := about.LeaseUntil(); until != nil && t.GetNotice() == "" {
		notes = append(notes, "its node may be silent until "+phrase.Clock(until.AsTime()))
	}
	if v1.HasTaskFailed(t) && t.GetNode() != "" {
		notes = append(notes, t.GetError())
	}
	if about.Claim() <= 1 { // it has been on at most one node
		return notes
	}
	moved, err := e.events.LastDetail(ctx, v, about.Name, v1.EventReassigned)
	if err != nil {
		e.log.Debug("the events of a task could not be read", "run", v.Run.GetId(), "task", about.Name, "error", err)
	}
	if moved != "" {
		notes = append(notes, "it was moved before: "+moved)
	}
	return notes
}

// holderNotes returns what holds up the tasks that have the lock for which a task waits.
func (e explainer) holderNotes(ctx context.Context, t *v1.Task) (notes []string) {
	if !phrase.IsLockWait(t.GetError()) || v1.HasTaskEnded(t) {
		return nil
	}
	for _, holder := range phrase.LockHolders(t.GetError()) {
		name, id, isTask := strings.Cut(holder, " of ")
		if !isTask {
			continue
		}
		v, err := e.reader.Read(ctx, id)
		if err != nil {
			e.log.Debug("the holder of a lock could not be read", "holder", holder, "error", err)
			continue
		}
		if about, err := e.reader.TaskRef(ctx, v, name); err == nil && about.Brief().GetNotice() != "" {
			notes = append(notes, holder+": "+about.Brief().GetNotice())
		}
	}
	return notes
}

// explainTask queries the placement queue about a task or instance of a run.
func (e explainer) explainTask(ctx context.Context, id string, about runview.TaskRef) (*historyv1.ExplainResponse, error) {
	desc, err := e.reader.Describe(ctx, id)
	if err != nil {
		return nil, err
	}
	in, err := e.reader.Input(ctx, desc.GetWorkflowExecutionInfo().GetExecution())
	if err != nil {
		return nil, err
	}
	req := newTaskRequest(about.Name, v1.TaskNamed(in.GetDefinition(), about.TaskName), in.GetOptions(), e.now())
	req.Claim = about.Claim()
	return e.queue.explain(ctx, &historyv1.ExplainRequest{RunId: id, Request: req})
}

// waitsFor returns what a task outside the placement queue waits for, or "" if the task is in the queue.
func waitsFor(v *runview.View, t *v1.Task) string {
	switch {
	case t.GetHeld():
		return phrase.Because("is held back", t.GetError())
	case v.Run.GetState() == v1.RunPaused && !v1.HasTaskEnded(t):
		return phrase.Because("waits for the run to be resumed", v.Run.GetError())
	case v.Run.GetApproval().GetState() == v1.ApprovalPending && !v1.HasTaskEnded(t):
		return "the run waits for the approval of an operator"
	case phrase.IsSlotWait(v.Run.GetError()) && !v1.HasTaskEnded(t):
		return v.Run.GetError()
	}
	if t.GetState() == v1.TaskPending {
		var open []string
		for _, parent := range t.GetDependsOn() {
			if p := v.Tasks[parent]; p != nil && !v1.HasTaskEnded(p.Brief) {
				open = append(open, parent)
			}
		}
		if len(open) > 0 {
			return "waits for " + strings.Join(open, ", ")
		}
	}
	if at := t.GetScheduledAfter(); at != nil && at.AsTime().After(time.Now()) {
		return "waits until " + at.AsTime().UTC().Format(time.RFC3339) + " after a failure"
	}
	return ""
}
