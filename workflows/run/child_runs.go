package run

import (
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/core/child"
	"switchyard/workflows/core/dataflow"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/names"
)

// endedAtOnce is the most children whose results one call reads.
const endedAtOnce = 32

// startRun asks for the run of a task of type run.
func (r *run) startRun(u *flight.Unit, spec *structpb.Struct) {
	r.children.Want(child.Owner{Unit: u}, &historyv1.ChildRequest{Run: &historyv1.ChildRunRequest{
		RunId: r.RunID, Chain: r.Chain, Generation: r.Input.GetGeneration(), Task: r.core.Name(u.Lead), Claim: u.Claim, Spec: spec,
		Options: r.Input.GetOptions(), Depth: r.Input.GetDepth() + 1, ParentFirst: r.First,
		By: r.commands.SubmittedBy, Batch: r.Input.GetBatch(), ByRole: r.Input.GetByRole(), SignedDecisions: r.Input.GetSignedDecisions(),
		Workflows: r.Input.GetWorkflows(), HeldLocks: r.flight.HeldBy(u),
	}}, "")
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
			RunId: r.RunID, Chain: r.Chain, Generation: r.Input.GetGeneration(), Task: r.core.Name(i), Attempt: r.core.Task(i).Attempt, InlineLimit: r.data.InlineLimit(),
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
			r.calls.Charge(calls.CommandCharge + dataflow.ResultBytes(answer.GetResult()))
			r.fly(r.flight.RunRead(c.Unit, answer))
		}
		r.wake() // there may be more results
	}, req)
}
