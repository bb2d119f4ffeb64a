package run

import (
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// startRun starts the run of a task of type run as a child workflow.
func (r *run) startRun(u *flight.Unit, spec *structpb.Struct) {
	task := r.core.Name(u.Lead)
	w := &childWorkflow{request: &historyv1.ChildRequest{Run: &historyv1.ChildRunRequest{
		RunId: r.id, Chain: r.chain, Generation: r.in.GetGeneration(), Task: task, Claim: u.Claim, Spec: spec,
		Options: r.in.GetOptions(), Depth: r.in.GetDepth() + 1, ParentFirst: r.first,
		By: r.commands.SubmittedBy, Batch: r.in.GetBatch(), ByRole: r.in.GetByRole(), SignedDecisions: r.in.GetSignedDecisions(),
		Workflows: r.in.GetWorkflows(), HeldLocks: r.flight.HeldBy(u),
	}}}
	w.start = func(prepared *historyv1.PreparedChild) (string, workflow.ChildWorkflowOptions) {
		now := r.now()
		r.fly(r.flight.RunStarted(u, w.id, now))
		attributes := visibility.StartedBy(r.id, prepared.GetWorkflow(), now)
		attributes.AddOrigin(r.commands.SubmittedBy, r.in.GetBatch())
		return names.RunWorkflow, workflow.ChildWorkflowOptions{
			WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
			TypedSearchAttributes: attributes.Typed(),
			StaticSummary:         prepared.GetWorkflow() + " for " + task + " of " + r.id,
		}
	}
	w.refused = func(why string) {
		delete(r.runs, u)
		r.fly(r.flight.RunRefused(u, why))
	}
	w.opened = func() { r.fly(r.flight.RunOpened(u, w.first)) }
	r.follow(u, w)
	r.children.want(w)
}

// reattachRun waits for the run that a task started in the previous execution.
func (r *run) reattachRun(u *flight.Unit) {
	w := &childWorkflow{id: u.Run.ID, first: u.Run.First}
	r.follow(u, w)
	r.children.reattach(w)
}

// follow registers a child, so that its task ends with the child's run.
func (r *run) follow(u *flight.Unit, w *childWorkflow) {
	r.runs[u] = w
	w.over = func(end *historyv1.RunEnd) {
		delete(r.runs, u)
		r.fly(r.flight.RunOver(u, end))
	}
}

// readResults reads the results of completed child runs, a bounded number at a time.
func (r *run) readResults() {
	completed := r.flight.Results(endedAtOnce)
	if len(completed) == 0 {
		return
	}
	req := &historyv1.ChildRunEndsRequest{}
	for _, c := range completed {
		i := c.Unit.Lead
		req.Children = append(req.Children, &historyv1.ChildRunEndRequest{
			Child: c.Unit.Run.ID, ChildChain: c.End.GetChain(), ChildGeneration: c.End.GetGeneration(),
			RunId: r.id, Chain: r.chain, Generation: r.in.GetGeneration(), Task: r.core.Name(i), Attempt: r.core.Task(i).Attempt, InlineLimit: r.inlineLimit(),
		})
	}
	r.calls.Must("read the results of child runs", names.ChildRunEndsActivity, func(f workflow.Future) {
		r.flight.ResultsRead(len(completed))
		var res historyv1.ChildRunEndsResponse
		err := f.Get(r.ctx, &res)
		for k, c := range completed {
			if err != nil {
				r.fly(r.flight.RunUnreadable(c.Unit, calls.CauseOf(err)))
				continue
			}
			answer := res.GetAnswers()[k]
			r.calls.Charge(calls.CommandCharge + resultBytes(answer.GetResult()))
			r.fly(r.flight.RunRead(c.Unit, answer))
		}
		r.wake() // there may be more results
	}, req)
}
