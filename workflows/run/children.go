package run

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
	"switchyard/workflows/phrase"
)

// Child workflows do part of the work of a run: the runs of tasks of type run, and the partitions of large fan-outs. Both start
// the same way:
//
//	wanted ── Prepare, for many at once ──> start ──> open ── its end ──> ended
//	   └── there can be none ──> refused
//
// A child outlives the execution that started it (its close policy is ABANDON), because the parent may continue as new.
// Temporal reports the end of a child as an event to the execution that started it. Later executions wait for it with
// AwaitRuns, one activity for all children of a run. A child waits for the end of its parent the same way and is cancelled when
// the parent has ended without it.
//
// A run that is reset to a point after the start of a child keeps that child. A run that is reset to an earlier point starts a
// child of its own, whose ID contains the chain of the reset run; the child of the terminated execution cancels itself.

const (
	// childTaskTimeout is the time after which a workflow task of a child moves to another worker process.
	childTaskTimeout = 6 * time.Second
	// parentCheck is the age at which a child starts to wait for the end of its parent.
	parentCheck = 5 * time.Second
	// preparedAtOnce is the most children that one call prepares. endedAtOnce is the most children whose results one call
	// reads.
	preparedAtOnce, endedAtOnce = 32, 32
)

// childWorkflow is a child workflow of a run, from the request for it until its end.
type childWorkflow struct {
	id        string // workflow ID; "" until it is prepared
	first     string // ID of its first execution; "" until it is open, or if only the server has it
	attached  bool   // it is open
	closing   bool   // it has reported its end and is about to close
	cancelled bool
	why       string // why it was cancelled, in one line; may be empty
	ended     bool
	// request is the request to Prepare for the child's start.
	request *historyv1.ChildRequest
	// start returns the workflow type and the options of a prepared child.
	start func(*historyv1.PreparedChild) (string, workflow.ChildWorkflowOptions)
	// refused ends the task or partition if the child cannot be started. opened reports that the child runs.
	refused func(why string)
	opened  func()
	// over reports the child's end, once. The end is nil if the child was cancelled before its start.
	over func(*historyv1.RunEnd)
}

// children owns the child workflows of a run and the workflows whose end it waits for.
type children struct {
	*execution

	wanted    []*childWorkflow // in the order of preparation
	preparing bool
	open      map[string]*childWorkflow // started children by workflow ID
	awaited   map[string]*awaited       // watched by AwaitRuns, by workflow ID
	awaiting  workflow.CancelFunc       // cancels the running AwaitRuns; nil if none runs
	changed   bool                      // the running AwaitRuns does not watch all of awaited
}

// awaited is a workflow whose end AwaitRuns reports.
type awaited struct {
	id, first string
	child     *historyv1.AwaitingChild // this workflow, if it waits for its parent
	since     time.Time
	over      func(*historyv1.RunEnd)
}

// isOpen reports whether the child with an ID has started and has not ended.
func (cw *children) isOpen(id string) bool { return cw.open[id] != nil }

// canDetach reports whether the next execution of this run can reattach every child.
func (cw *children) canDetach() bool {
	if len(cw.wanted) > 0 || cw.preparing {
		return false
	}
	//workflowcheck:ignore (whether all can does not depend on the order)
	for _, w := range cw.open {
		if !w.attached || w.closing || w.cancelled {
			return false
		}
	}
	return true
}

// want queues a child workflow for preparation and start.
func (cw *children) want(w *childWorkflow) {
	cw.wanted = append(cw.wanted, w)
}

// prepare prepares queued children, a bounded number at a time.
func (cw *children) prepare() {
	cw.wanted = slices.DeleteFunc(cw.wanted, func(w *childWorkflow) bool {
		if w.cancelled {
			w.over(nil)
		}
		return w.cancelled
	})
	if cw.preparing || len(cw.wanted) == 0 {
		return
	}
	n := min(len(cw.wanted), preparedAtOnce)
	now := slices.Clone(cw.wanted[:n]) // meanwhile the others may be cancelled and leave the list
	cw.wanted = cw.wanted[n:]
	req := &historyv1.PrepareRequest{}
	for _, w := range now {
		req.Children = append(req.Children, w.request)
	}
	cw.preparing = true
	cw.calls.Must("prepare child workflows", names.PrepareActivity, func(f workflow.Future) {
		cw.preparing = false
		var res historyv1.PrepareResponse
		err := f.Get(cw.ctx, &res)
		for k, w := range now {
			switch {
			case w.cancelled:
				w.over(nil)
			case err != nil:
				w.refused(err.Error())
			case res.GetChildren()[k].GetError() != "":
				w.refused(res.GetChildren()[k].GetError())
			default:
				cw.start(w, res.GetChildren()[k])
			}
		}
		cw.wake() // there may be more children
	}, req)
}

func (cw *children) start(w *childWorkflow, prepared *historyv1.PreparedChild) {
	again := w.id == prepared.GetId()
	w.id = prepared.GetId()
	cw.open[w.id] = w
	workflowType, options := w.start(prepared)
	options.WorkflowID, options.TaskQueue, options.WorkflowTaskTimeout = w.id, names.ControlQueue, childTaskTimeout
	options.ParentClosePolicy = enumspb.PARENT_CLOSE_POLICY_ABANDON
	cw.calls.Charge(calls.ChildCharge)
	future := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(cw.ctx, options), workflowType, prepared.GetInput())
	cw.calls.Watch(future.GetChildWorkflowExecution(), func(f workflow.Future) {
		var execution workflow.Execution
		if f.Get(cw.ctx, &execution) == nil {
			cw.opened(w, execution.RunID)
		}
	})
	cw.calls.Watch(future, func(f workflow.Future) {
		var kept historyv1.StatusResponse
		err := f.Get(cw.ctx, &kept)
		if _, there := errors.AsType[*temporal.ChildWorkflowExecutionAlreadyStartedError](err); there {
			delete(cw.open, w.id)
			if again {
				w.refused("workflow " + w.id + " exists already; it is not a child of this run")
				return
			}
			// A reset put this execution between Prepare and the start: the existing child belongs to the terminated execution.
			cw.want(w)
			cw.wake()
			return
		}
		cw.ended(w, childEnd(&kept, err))
	})
}

func (cw *children) opened(w *childWorkflow, first string) {
	w.first, w.attached, w.request = first, true, nil
	if w.opened != nil {
		w.opened()
	}
	if w.cancelled {
		cw.requestCancel(w)
	}
}

// reattach continues with a child that the previous execution started.
func (cw *children) reattach(w *childWorkflow) {
	cw.open[w.id], w.attached = w, true
	cw.awaitEnd(&awaited{id: w.id, first: w.first, over: func(end *historyv1.RunEnd) { cw.ended(w, end) }})
}

func (cw *children) ended(w *childWorkflow, end *historyv1.RunEnd) {
	if w.ended {
		return
	}
	w.ended = true
	if cw.open[w.id] == w {
		delete(cw.open, w.id)
	}
	cw.wake() // other children may now start
	w.over(end)
}

// cancel cancels a child, even one that is not open yet.
func (cw *children) cancel(w *childWorkflow, why string) {
	if w.cancelled {
		return
	}
	w.cancelled, w.why = true, why
	if w.attached {
		cw.requestCancel(w)
	}
	cw.wake()
}

func (cw *children) requestCancel(w *childWorkflow) {
	cw.calls.Watch(cw.calls.Signal(w.id, names.CancelSignal, &historyv1.RunCommand{Reason: w.why}, len(w.why)), func(f workflow.Future) {
		if err := f.Get(cw.ctx, nil); err != nil {
			workflow.GetLogger(cw.ctx).Debug("could not cancel a child workflow", "child", w.id, "error", err)
		}
	})
}

// awaitEnd adds a workflow that this execution did not start to those whose end AwaitRuns reports.
func (cw *children) awaitEnd(a *awaited) {
	a.since = cw.now()
	cw.awaited[a.id] = a
	cw.changed = true
	cw.wake()
}

// awaitRuns keeps one AwaitRuns activity running that watches everything in awaited.
func (cw *children) awaitRuns() {
	if !cw.changed {
		return
	}
	cw.changed = false
	if cw.awaiting != nil {
		cw.awaiting()
		cw.awaiting = nil
	}
	if len(cw.awaited) == 0 {
		return
	}
	req := &historyv1.AwaitRunsRequest{}
	//workflowcheck:ignore (the keys are sorted)
	for _, id := range slices.Sorted(maps.Keys(cw.awaited)) {
		a := cw.awaited[id]
		req.Runs = append(req.Runs, &historyv1.AwaitedRun{WorkflowId: id, First: a.first, Since: timestamppb.New(a.since), Child: a.child})
	}
	ctx, cancel := workflow.WithCancel(cw.ctx)
	cw.awaiting = cancel
	future := cw.calls.ActivityWith(ctx, options.AwaitRuns(len(req.GetRuns())), names.AwaitRunsActivity, req, calls.MemberCharge*len(req.GetRuns()))
	cw.calls.Watch(future, func(f workflow.Future) {
		if ctx.Err() != nil {
			return // a newer AwaitRuns has replaced it
		}
		cw.awaiting = nil
		cw.changed = true
		var res historyv1.AwaitRunsResponse
		if err := f.Get(cw.ctx, &res); err != nil {
			workflow.GetLogger(cw.ctx).Warn("could not await the ends of child workflows", "error", err)
		}
		for _, end := range res.GetEnds() {
			if a := cw.awaited[end.GetWorkflowId()]; a != nil {
				delete(cw.awaited, end.GetWorkflowId())
				a.over(end)
			}
		}
		cw.wake()
	})
}

// childEnd translates the result of a child workflow to the end of its run.
func childEnd(kept *historyv1.StatusResponse, err error) *historyv1.RunEnd {
	if err == nil {
		return &historyv1.RunEnd{Status: v1.RunEndCompleted, Generation: kept.GetRun().GetGeneration(), Chain: kept.GetChain()}
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		end := &historyv1.RunEnd{Status: v1.RunEndFailed, Error: app.Message()}
		if app.Details(kept) == nil {
			end.FinalReason = kept.GetFinalReason()
			if kept.GetRun().GetState() == v1.RunRejected {
				end.State, end.Error = v1.RunRejected, kept.GetRun().GetError()
			}
		}
		return end
	}
	if temporal.IsCanceledError(err) {
		return &historyv1.RunEnd{Status: v1.RunEndCancelled}
	}
	if _, terminated := errors.AsType[*temporal.TerminatedError](err); terminated {
		return &historyv1.RunEnd{Status: v1.RunEndTerminated}
	}
	return &historyv1.RunEnd{Error: err.Error()}
}

// endText describes the end of a child in words.
func endText(end *historyv1.RunEnd) string {
	return phrase.Because(cmp.Or(end.GetStatus(), v1.TaskFailed), end.GetError())
}
