package run

import (
	"cmp"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
	"switchyard/workflows/structs"
	"switchyard/workflows/visibility"
)

// childRuns owns the runs of tasks of type run: each is a child workflow, and its result ends the task.
type childRuns struct {
	*execution
	children  childRunChildren
	evaluator asker
	outbox    charger
	store     caller

	runs    map[int]*child // by task
	results []*child       // completed runs whose results are still to be read
	reading bool
}

// The childRuns use these parts of other components.
type (
	childRunChildren interface {
		want(w *childWorkflow)
		reattach(w *childWorkflow)
		cancel(w *childWorkflow, why string)
	}
)

// child is the run of a task of type run. It exists from the task's admission, before there is a run.
type child struct {
	*childWorkflow
	unit      *flight.Unit
	startedAt *timestamppb.Timestamp // nil if it has not started
	end       *v1.RunEnd
}

// start starts the run of a task once the expressions in its spec have been rendered.
func (cr *childRuns) start(u *flight.Unit) {
	if definition.HasTemplates(cr.core.Definition(u.Lead)) {
		cr.evaluator.ask(question{task: u.Lead, kind: asksTemplate, claim: u.Claim, answered: func(a *v1.ConditionAnswer) { cr.specRendered(u.Lead, a) }})
		return
	}
	cr.prepare(u, cr.core.Definition(u.Lead).GetSpec())
}

// specRendered continues with a task once the expressions in its spec have been rendered.
func (cr *childRuns) specRendered(i int, a *v1.ConditionAnswer) {
	switch u := cr.flight.UnitOf(i); {
	case u == nil:
	case a.GetError() != "":
		cr.fly(cr.flight.FailBeforeStart(i, a))
	default:
		cr.prepare(u, a.GetRendered())
	}
}

// prepare requests the run that a task starts. Expressions in a definition within the spec are left alone: they belong to
// the child.
func (cr *childRuns) prepare(u *flight.Unit, rendered *structpb.Struct) {
	spec := structs.Clone(rendered)
	if inline := cr.core.Definition(u.Lead).GetSpec().GetFields()["definition"]; inline != nil {
		spec.Fields["definition"] = inline
	}
	i := u.Lead
	c := &child{unit: u, childWorkflow: &childWorkflow{request: &v1.ChildRequest{Run: &v1.ChildRunRequest{
		RunId: cr.id, Chain: cr.chain, Generation: cr.in.GetGeneration(), Task: cr.core.Name(i), Claim: u.Claim, Spec: spec,
		Options: cr.in.GetOptions(), Depth: cr.in.GetDepth() + 1, ParentFirst: cr.first,
		By: cr.submittedBy, Batch: cr.in.GetBatch(), ByRole: cr.in.GetByRole(), SignedDecisions: cr.in.GetSignedDecisions(),
		Workflows: cr.in.GetWorkflows(), HeldLocks: cr.flight.HeldBy(u),
	}}}}
	c.start = func(prepared *v1.PreparedChild) (string, workflow.ChildWorkflowOptions) {
		now := cr.now()
		c.startedAt = timestamppb.New(now)
		cr.status.SetChildRun(i, c.id)
		attributes := visibility.StartedBy(cr.id, prepared.GetWorkflow(), now)
		attributes.AddOrigin(cr.submittedBy, cr.in.GetBatch())
		return names.RunWorkflow, workflow.ChildWorkflowOptions{
			WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
			TypedSearchAttributes: attributes.Typed(),
			StaticSummary:         prepared.GetWorkflow() + " for " + cr.core.Name(i) + " of " + cr.id,
		}
	}
	c.refused = func(why string) {
		cr.end(c, dag.Ended{State: v1.TaskFailed, Reason: v1.ReasonChildRun, Error: why, NoRetry: true}, nil)
	}
	c.opened = func() {
		cr.status.SetStartedAt(i, c.startedAt)
		cr.raise(dag.Running{Task: i, Claim: u.Claim})
	}
	cr.follow(c)
	cr.status.SetPlace(i, "", -1)
	cr.raise(dag.Placed{Task: i, Claim: u.Claim})
	cr.children.want(c.childWorkflow)
}

// follow registers a child, so that its task ends with the child's run.
func (cr *childRuns) follow(c *child) {
	c.over = func(end *v1.RunEnd) { cr.ended(c, end) }
	cr.runs[c.unit.Lead] = c
}

// saveTasks hands the runs over to the next execution.
func (cr *childRuns) saveTasks(c *v1.RunState) {
	//workflowcheck:ignore (into a map again)
	for i, child := range cr.runs {
		c.Tasks[cr.core.Name(i)].ChildFirst = child.first
	}
}

// restoreTask continues with the run that a task started in the previous execution.
func (cr *childRuns) restoreTask(i int, t *v1.TaskState) {
	if cr.in.GetState() == nil || !v1.IsTaskDispatched(t.GetTask().GetState()) || cr.core.Definition(i).GetType() != v1.TypeRun || t.GetTask().Count != nil {
		return
	}
	c := &child{
		unit: cr.flight.Track(i), childWorkflow: &childWorkflow{id: t.GetTask().GetChildRun(), first: t.GetChildFirst()},
		startedAt: t.GetTask().GetStartedAt(),
	}
	cr.follow(c)
	cr.children.reattach(c.childWorkflow)
}

// stop cancels the run of a task. It returns false if there is none.
func (cr *childRuns) stop(i int) bool {
	c := cr.runs[i]
	if c == nil {
		return false
	}
	cr.children.cancel(c.childWorkflow, phrase.Because("with task "+cr.core.Name(i)+" of run "+cr.id, cr.core.EndReason(i)))
	return true
}

// ended ends a task when its run has ended. If the run completed, its result is read first.
func (cr *childRuns) ended(c *child, end *v1.RunEnd) {
	switch {
	case end == nil:
		cr.end(c, dag.Ended{State: v1.TaskCancelled, NoRetry: true}, nil)
	case end.GetStatus() == v1.RunEndCompleted:
		c.end = end
		cr.results = append(cr.results, c)
		cr.wake()
	default:
		ended := childFailure(c.id, end)
		if ended.State == v1.TaskCancelled && !c.cancelled { // a person cancelled it and does not want a retry
			ended.State, ended.Reason, ended.NoRetry = v1.TaskFailed, v1.ReasonChildRun, true
		}
		cr.end(c, ended, nil)
	}
}

// idOf returns the ID of a task's run, or "" if it is not prepared yet. It returns false if there is no run.
func (cr *childRuns) idOf(i int) (string, bool) {
	if c := cr.runs[i]; c != nil {
		return c.id, true
	}
	return "", false
}

// hasResults reports whether results of completed child runs are still to be read.
func (cr *childRuns) hasResults() bool { return len(cr.results) > 0 || cr.reading }

// readResults reads the results of completed child runs, a bounded number at a time.
func (cr *childRuns) readResults() {
	if cr.reading || len(cr.results) == 0 {
		return
	}
	now := cr.results[:min(len(cr.results), endedAtOnce)]
	req := &v1.ChildRunEndsRequest{}
	for _, c := range now {
		i := c.unit.Lead
		req.Children = append(req.Children, &v1.ChildRunEndRequest{
			Child: c.id, ChildChain: c.end.GetChain(), ChildGeneration: c.end.GetGeneration(),
			RunId: cr.id, Chain: cr.chain, Generation: cr.in.GetGeneration(), Task: cr.core.Name(i), Attempt: cr.core.Task(i).Attempt, InlineLimit: cr.inlineLimit(),
		})
	}
	cr.reading = true
	cr.store.must("read the results of child runs", names.ChildRunEndsActivity, func(f workflow.Future) {
		cr.reading = false
		cr.results = cr.results[len(now):]
		var res v1.ChildRunEndsResponse
		err := f.Get(cr.ctx, &res)
		for k, c := range now {
			if err != nil {
				// The work is done; a retry would repeat it.
				cr.end(c, dag.Ended{
					State: v1.TaskFailed, Reason: v1.ReasonSystem, NoRetry: true,
					Error: "run " + c.id + " completed, but its result cannot be read: " + causeOf(err),
				}, nil)
				continue
			}
			answer := res.GetAnswers()[k]
			cr.outbox.charge(commandCharge + resultBytes(answer.GetResult()))
			ended := dag.Ended{State: answer.GetState(), Reason: answer.GetReason(), Error: answer.GetError()}
			ended.NoRetry = ended.State != v1.TaskCompleted // a retry would repeat the child's work
			cr.end(c, ended, answer)
		}
		cr.wake() // there may be more results
	}, req)
}

// end ends a task of type run. res is nil if there was no run, or if it did not complete.
func (cr *childRuns) end(c *child, ended dag.Ended, res *v1.ExecuteResponse) {
	delete(cr.runs, c.unit.Lead)
	ended.ExitCode = -1
	if c.id != "" {
		ended.ExitCode = 1
	}
	switch {
	case res != nil:
		ended.ExitCode = res.GetResult().GetExitCode()
	case c.startedAt != nil:
		res = &v1.ExecuteResponse{StartedAt: c.startedAt, Result: &v1.TaskResult{ExitCode: ended.ExitCode, Output: &structpb.Struct{}}}
	default:
		res = &v1.ExecuteResponse{}
	}
	cr.fly(cr.flight.EndElsewhere(c.unit.Lead, res, ended))
}

// childFailure returns the end of a task whose run did not complete. A failure that the run would only repeat is one of the task,
// too, for the same reason.
func childFailure(id string, end *v1.RunEnd) dag.Ended {
	failed := func(reason, text string) dag.Ended {
		return dag.Ended{State: v1.TaskFailed, Reason: reason, Error: "run " + id + " " + text, NoRetry: end.GetFinalReason() != ""}
	}
	switch {
	case end.GetState() == v1.RunRejected: // by a person, or because too many runs of the workflow are open
		return failed(cmp.Or(end.GetFinalReason(), v1.ReasonConcurrency), "was rejected: "+end.GetError())
	case end.GetStatus() == v1.RunEndFailed:
		return failed(cmp.Or(end.GetFinalReason(), v1.ReasonChildRun), "failed: "+end.GetError())
	case end.GetStatus() == v1.RunEndCancelled:
		ended := failed(v1.ReasonCancelled, "was cancelled")
		ended.State, ended.NoRetry = v1.TaskCancelled, true
		return ended
	case end.GetStatus() == v1.RunEndTerminated:
		ended := failed(v1.ReasonChildRun, "was terminated")
		ended.NoRetry = true
		return ended
	default:
		return failed(v1.ReasonSystem, "could not be carried out: "+end.GetError())
	}
}
