package run

import (
	"fmt"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/phrase"
	"switchyard/workflows/status"
)

// askApproval has a task wait for a person. What is asked may have to be rendered first.
func (r *run) askApproval(u *unit) {
	if definition.HasTemplates(r.core.Definition(u.lead)) {
		r.ask(question{task: u.lead, kind: asksTemplate, claim: u.claim})
		return
	}
	r.waitForPerson(u, r.core.Definition(u.lead).GetSpec())
}

// waitForPerson shows that a task waits for a person.
func (r *run) waitForPerson(u *unit, spec *structpb.Struct) {
	message := spec.GetFields()["message"].GetStringValue()
	r.approvals[u.lead] = true
	r.status.SetPlace(u.lead, message, -1)
	r.log.Add(workflow.Now(r.ctx), v1.EventPaused, u.lead, "", 0, u.claim, phrase.Because(v1.ReasonApproval, message),
		eventlog.KeyReason.Of(v1.ReasonApproval), eventlog.KeyMessage.Of(message))
	r.events = append(r.events, dag.Placed{Task: u.lead, Claim: u.claim})
}

func (r *run) mayJudge(i int) error {
	name, def := r.core.Name(i), r.core.Definition(i)
	switch {
	case def.GetType() != v1.TypeApproval:
		return fmt.Errorf("task %s is of type %s; only one of type approval can be approved or rejected", name, def.GetType())
	case !r.approvals[i]:
		return fmt.Errorf("task %s is %s; it does not wait for approval", name, r.status.ShownState(i))
	}
	return nil
}

func (r *run) approve(i int, c *v1.TaskCommand) {
	r.logTask(i, v1.EventApproved, c)
	r.judged(i, c, dag.Ended{State: v1.TaskCompleted})
}

func (r *run) reject(i int, c *v1.TaskCommand) {
	r.logTask(i, v1.EventRejected, c)
	r.judged(i, c, dag.Ended{
		State: v1.TaskRejected, Reason: v1.ReasonRejected, ExitCode: -1, NoRetry: true,
		Error: phrase.Because(phrase.By("rejected", c.GetBy()), c.GetReason()),
	})
}

// judged ends a task that waited for a person. Who it was and why are its output.
func (r *run) judged(i int, c *v1.TaskCommand, ended dag.Ended) {
	output := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	//workflowcheck:ignore (a map again)
	for key, text := range map[string]string{"by": c.GetBy(), "reason": c.GetReason()} {
		if text != "" {
			output.Fields[key] = structpb.NewStringValue(text)
		}
	}
	r.endElsewhere(i, &v1.TaskResult{ExitCode: ended.ExitCode, Output: output}, ended)
}

// endElsewhere ends a task that no node had.
func (r *run) endElsewhere(i int, result *v1.TaskResult, ended dag.Ended) {
	rec := r.core.Task(i)
	ended.Task, ended.Claim = i, rec.Claim
	res := &v1.ExecuteResponse{Result: result, AssignedAt: r.status.AssignedAt(i)}
	if u := r.units[i]; u != nil {
		r.leave(u)
	}
	delete(r.approvals, i)
	r.ended(dispatchEnd{assignment: assignment{task: i, claim: rec.Claim}, number: rec.Attempt, ended: ended, res: res, outcome: v1.OutcomeDone})
}

// rendered continues with a task that needs no node, when the expressions in its
// spec have been replaced.
func (r *run) rendered(i int, a *v1.ConditionAnswer) {
	u := r.units[i]
	if u == nil {
		return
	}
	switch {
	case a.GetError() != "":
	case r.core.Definition(i).GetType() == v1.TypeRun:
		r.prepareChild(u, a.GetRendered())
		return
	default:
		r.waitForPerson(u, a.GetRendered())
		return
	}
	r.failBeforeStart(i, a)
}

// failBeforeStart fails a task of which an expression could not be evaluated that it needs to start.
func (r *run) failBeforeStart(i int, a *v1.ConditionAnswer) {
	reason := v1.ReasonExpression
	if a.GetBroken() {
		reason = v1.ReasonSystem
	}
	r.events = append(r.events, dag.Placed{Task: i, Claim: r.core.Task(i).Claim})
	r.endElsewhere(i, status.NothingRan, dag.Ended{State: v1.TaskFailed, Reason: reason, Error: a.GetError(), ExitCode: -1, NoRetry: true})
}
