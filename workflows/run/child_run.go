package run

import (
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
	"switchyard/workflows/structs"
	"switchyard/workflows/visibility"
)

// child is the run of a task of type run. It exists from the task's admission, before there is a run.
type child struct {
	*childWorkflow
	unit      *unit
	startedAt *timestamppb.Timestamp // nil if it has not started
	end       *v1.RunEnd
}

// startChild starts the run of a task once the expressions in its spec have been rendered.
func (r *run) startChild(u *unit) {
	if definition.HasTemplates(r.core.Definition(u.lead)) {
		r.ask(question{task: u.lead, kind: asksTemplate, claim: u.claim})
		return
	}
	r.prepareChild(u, r.core.Definition(u.lead).GetSpec())
}

// prepareChild requests the run that a task starts. Expressions in a definition within the spec are left alone: they belong to
// the child.
func (r *run) prepareChild(u *unit, rendered *structpb.Struct) {
	spec := structs.Clone(rendered)
	if inline := r.core.Definition(u.lead).GetSpec().GetFields()["definition"]; inline != nil {
		spec.Fields["definition"] = inline
	}
	i := u.lead
	c := &child{unit: u, childWorkflow: &childWorkflow{request: &v1.ChildRequest{Run: &v1.ChildRunRequest{
		RunId: r.id, Chain: r.chain, Generation: r.in.GetGeneration(), Task: r.core.Name(i), Claim: u.claim, Spec: spec,
		Options: r.in.GetOptions(), Depth: r.in.GetDepth() + 1, ParentFirst: workflow.GetInfo(r.root).FirstRunID,
		By: r.status.Run.SubmittedBy, Batch: r.in.GetBatch(), ByRole: r.in.GetByRole(), SignedDecisions: r.in.GetSignedDecisions(),
	}}}}
	c.start = func(prepared *v1.PreparedChild) (string, workflow.ChildWorkflowOptions) {
		now := workflow.Now(r.ctx)
		c.startedAt = timestamppb.New(now)
		r.status.Extras(i).ChildRun = c.id
		r.status.Touch(i)
		attributes := visibility.StartedBy(r.id, prepared.GetWorkflow(), now)
		attributes.AddOrigin(r.status.Run.SubmittedBy, r.in.GetBatch())
		return names.RunWorkflow, workflow.ChildWorkflowOptions{
			WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
			TypedSearchAttributes: attributes.Typed(),
			StaticSummary:         prepared.GetWorkflow() + " for " + r.core.Name(i) + " of " + r.id,
		}
	}
	c.refused = func(why string) {
		r.endChild(c, dag.Ended{State: v1.TaskFailed, Reason: v1.ReasonChildRun, Error: why, NoRetry: true}, nil)
	}
	c.opened = func() {
		r.status.SetStartedAt(i, c.startedAt)
		r.events = append(r.events, dag.Running{Task: i, Claim: u.claim})
	}
	r.followChild(c)
	r.status.SetPlace(i, "", -1)
	r.events = append(r.events, dag.Placed{Task: i, Claim: u.claim})
	r.wantChild(c.childWorkflow)
}

// followChild registers a child, so that its task ends with the child's run.
func (r *run) followChild(c *child) {
	c.over = func(end *v1.RunEnd) { r.childRunEnded(c, end) }
	r.childRuns[c.unit.lead] = c
}

// restoreChild continues with the run that a task started in the previous execution.
func (r *run) restoreChild(i int, t *v1.TaskState) {
	u := &unit{lead: i, members: []int{i}, claim: r.core.Task(i).Claim, lock: r.lockOf(i)}
	r.track(u)
	c := &child{
		unit: u, childWorkflow: &childWorkflow{id: t.GetTask().GetChildRun(), first: t.GetChildFirst()},
		startedAt: t.GetTask().GetStartedAt(),
	}
	r.followChild(c)
	r.reattachChild(c.childWorkflow)
}

// stopChild cancels the run of a task. It returns false if there is none.
func (r *run) stopChild(i int) bool {
	c := r.childRuns[i]
	if c == nil {
		return false
	}
	r.cancelChild(c.childWorkflow, phrase.Because("with task "+r.core.Name(i)+" of run "+r.id, r.endReason(i)))
	return true
}

// childRunEnded ends a task when its run has ended. If the run completed, its result is read first.
func (r *run) childRunEnded(c *child, end *v1.RunEnd) {
	switch {
	case end == nil:
		r.endChild(c, dag.Ended{State: v1.TaskCancelled, NoRetry: true}, nil)
	case end.GetStatus() == v1.RunEndCompleted:
		c.end = end
		r.children.results = append(r.children.results, c)
		r.wake()
	default:
		ended := childFailure(c.id, end)
		if ended.State == v1.TaskCancelled && !c.cancelled { // a person cancelled it and does not want a retry
			ended.State, ended.Reason, ended.NoRetry = v1.TaskFailed, v1.ReasonChildRun, true
		}
		r.endChild(c, ended, nil)
	}
}

// readChildResults reads the results of completed child runs, a bounded number at a time.
func (r *run) readChildResults() {
	s := &r.children
	if s.reading || len(s.results) == 0 {
		return
	}
	now := s.results[:min(len(s.results), endedAtOnce)]
	req := &v1.ChildRunEndsRequest{}
	for _, c := range now {
		i := c.unit.lead
		req.Children = append(req.Children, &v1.ChildRunEndRequest{
			Child: c.id, ChildChain: c.end.GetChain(), ChildGeneration: c.end.GetGeneration(),
			RunId: r.id, Chain: r.chain, Generation: r.in.GetGeneration(), Task: r.core.Name(i), Attempt: r.core.Task(i).Attempt, InlineLimit: r.inlineLimit(),
		})
	}
	s.reading = true
	r.must("read what child runs have left", names.ChildRunEndsActivity, func(f workflow.Future) {
		s.reading = false
		s.results = s.results[len(now):]
		var res v1.ChildRunEndsResponse
		err := f.Get(r.ctx, &res)
		for k, c := range now {
			if err != nil {
				// The work is done; a retry would repeat it.
				r.endChild(c, dag.Ended{
					State: v1.TaskFailed, Reason: v1.ReasonSystem, NoRetry: true,
					Error: "run " + c.id + " completed, but what it has left cannot be read: " + causeOf(err),
				}, nil)
				continue
			}
			answer := res.GetAnswers()[k]
			r.charge(commandCharge + resultBytes(answer.GetResult()))
			ended := dag.Ended{State: answer.GetState(), Reason: answer.GetReason(), Error: answer.GetError()}
			ended.NoRetry = ended.State != v1.TaskCompleted // a retry would repeat the child's work
			r.endChild(c, ended, answer)
		}
		r.wake() // there may be more results
	}, req)
}

// endChild ends a task of type run. res is nil if there was no run, or if it did not complete.
func (r *run) endChild(c *child, ended dag.Ended, res *v1.ExecuteResponse) {
	i := c.unit.lead
	delete(r.childRuns, i)
	r.leave(c.unit)
	d := r.newEnd(assignment{task: i, claim: c.unit.claim})
	ended.Task, ended.Claim, ended.ExitCode = d.ended.Task, d.ended.Claim, -1
	if c.id != "" {
		ended.ExitCode = 1
	}
	if res != nil {
		d.res, ended.ExitCode = res, res.GetResult().GetExitCode()
	} else if c.startedAt != nil {
		d.res.StartedAt = c.startedAt
		d.res.Result = &v1.TaskResult{ExitCode: ended.ExitCode, Output: &structpb.Struct{}}
	}
	d.ended, d.outcome = ended, v1.OutcomeDone
	d.res.AssignedAt = r.status.AssignedAt(i)
	r.ended(d)
}

// childFailure returns the end of a task whose run did not complete.
func childFailure(id string, end *v1.RunEnd) dag.Ended {
	failed := func(reason, text string) dag.Ended {
		return dag.Ended{State: v1.TaskFailed, Reason: reason, Error: "run " + id + " " + text}
	}
	switch {
	case end.GetState() == v1.RunRejected:
		return failed(v1.ReasonRejected, "was rejected: "+end.GetError())
	case end.GetStatus() == v1.RunEndFailed:
		return failed(v1.ReasonChildRun, "failed: "+end.GetError())
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
