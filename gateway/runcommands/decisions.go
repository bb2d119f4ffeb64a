package runcommands

import (
	"context"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/signing"
	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// decisions sends the decisions of callers about tasks and runs that wait for approval.
type decisions struct {
	index   resolver
	reader  *runview.Reader
	updater updater
	signer  *signing.Signer
	now     func() time.Time
	// fourEyes refuses decisions about tasks by who submitted their run.
	fourEyes bool
}

// ApproveTask approves a task that waits for approval.
func (ds decisions) ApproveTask(ctx context.Context, req *connect.Request[v1.ApproveTaskRequest]) (*connect.Response[v1.ApproveTaskResponse], error) {
	id, err := ds.decideTask(ctx, req.Msg.GetId(), names.ApproveUpdate, &historyv1.Decision{
		Task: req.Msg.GetTask(), Verdict: v1.ApprovalApproved, Reason: req.Msg.GetReason(), Input: req.Msg.GetInput(),
	})
	return respond(&v1.ApproveTaskResponse{Id: id}, err)
}

// RejectTask rejects a task that waits for approval.
func (ds decisions) RejectTask(ctx context.Context, req *connect.Request[v1.RejectTaskRequest]) (*connect.Response[v1.RejectTaskResponse], error) {
	id, err := ds.decideTask(ctx, req.Msg.GetId(), names.RejectUpdate, &historyv1.Decision{
		Task: req.Msg.GetTask(), Verdict: v1.ApprovalRejected, Reason: req.Msg.GetReason(),
	})
	return respond(&v1.RejectTaskResponse{Id: id}, err)
}

// ApproveRun approves a run that waits for approval, which then starts.
func (ds decisions) ApproveRun(ctx context.Context, req *connect.Request[v1.ApproveRunRequest]) (*connect.Response[v1.ApproveRunResponse], error) {
	isSeen := func(version int32) bool { return version == req.Msg.GetDefinitionVersion() }
	id, err := ds.decideRun(ctx, req.Msg.GetId(), names.ApproveRunUpdate, v1.ApprovalApproved, req.Msg.GetReason(), isSeen)
	return respond(&v1.ApproveRunResponse{Id: id}, err)
}

// RejectRun rejects a run that waits for approval, which then ends.
func (ds decisions) RejectRun(ctx context.Context, req *connect.Request[v1.RejectRunRequest]) (*connect.Response[v1.RejectRunResponse], error) {
	anyVersion := func(int32) bool { return true }
	id, err := ds.decideRun(ctx, req.Msg.GetId(), names.RejectRunUpdate, v1.ApprovalRejected, req.Msg.GetReason(), anyVersion)
	return respond(&v1.RejectRunResponse{Id: id}, err)
}

// decideTask sends a decision about a task to its run, or to the child of the run that carries the instance.
func (ds decisions) decideTask(ctx context.Context, text, update string, made *historyv1.Decision) (id string, err error) {
	p := auth.From(ctx)
	id, desc, err := ds.findRunOf(ctx, text, made.GetTask())
	if err != nil {
		return "", err
	}
	isSubmitter := p.Owns(runindex.OwnerOf(desc.GetWorkflowExecutionInfo()))
	if isSubmitter && ds.fourEyes {
		return "", connect.NewError(connect.CodePermissionDenied, fmt.Errorf("%s submitted run %s and cannot decide about its tasks, because the gateway has --four-eyes; ask another person", p.Name, id))
	}
	decide := func(workflow string, desc *runview.Description) error {
		d := proto.CloneOf(made)
		d.Workflow, d.IsSubmitter = workflow, isSubmitter
		d, err := ds.signedDecision(ctx, desc, d)
		if err != nil {
			return err
		}
		return ds.updater.Send(ctx, workflow, update, &historyv1.TaskCommand{Task: made.GetTask(), Reason: made.GetReason(), Input: made.GetInput(), By: p.Name, Decision: d})
	}
	err = decide(id, desc)
	if rpcerror.CodeOf(err) == connect.CodeNotFound {
		if child := ds.updater.FindChild(ctx, id, made.GetTask()); child != "" {
			if desc, err = ds.reader.Describe(ctx, child); err == nil {
				err = decide(child, desc)
			}
		}
	}
	return id, err
}

// findRunOf returns the run with a task that the caller decides about. A person who may not access the run finds it by its whole id
// if the task names the person as an approver; otherwise it looks like a run that does not exist.
func (ds decisions) findRunOf(ctx context.Context, text, task string) (string, *runview.Description, error) {
	p := auth.From(ctx)
	id, unknown := ds.index.Resolve(ctx, text)
	if unknown == nil {
		desc, err := ds.reader.Describe(ctx, id)
		return id, desc, err
	}
	if rpcerror.CodeOf(unknown) != connect.CodeNotFound || !p.IsVerified() {
		return "", nil, unknown
	}
	desc, err := ds.reader.Describe(ctx, text)
	if err != nil {
		return "", nil, unknown
	}
	in, err := ds.reader.DefinedInput(ctx, desc.GetWorkflowExecutionInfo())
	if err != nil {
		return "", nil, unknown
	}
	if base, _, isInstance := names.ParseInstanceName(task); isInstance {
		task = base
	}
	def := v1.TaskNamed(in.GetDefinition(), task)
	if def.GetType() != v1.TypeApproval || !slices.Contains(definition.Approval(def).GetApprovers().GetNames(), p.Name) {
		return "", nil, unknown
	}
	return text, desc, nil
}

// decideRun sends a decision to the run that it is about. The user who submitted the run may not decide. mayDecide reports whether
// the decision is about a version of the run.
func (ds decisions) decideRun(ctx context.Context, text, update, verdict, reason string, mayDecide func(version int32) bool) (id string, err error) {
	id, err = ds.index.Resolve(ctx, text)
	if err != nil {
		return "", err
	}
	desc, err := ds.reader.Describe(ctx, id)
	if err != nil {
		return "", err
	}
	if p := auth.From(ctx); p.Owns(runindex.OwnerOf(desc.GetWorkflowExecutionInfo())) {
		return "", connect.NewError(connect.CodePermissionDenied, fmt.Errorf("%s submitted run %s and cannot decide about it; ask another operator", p.Name, id))
	}
	in, err := ds.reader.Input(ctx, desc.GetWorkflowExecutionInfo().GetExecution())
	if err != nil {
		return "", err
	}
	switch version := in.GetDefinitionVersion(); {
	case mayDecide(version):
	case version == 0:
		return "", rpcerror.WrongState("run %s is as it was submitted, which is version 0 of its definition; look at `switchyard runs get %s` and approve it without --definition-version", id, id)
	default:
		return "", rpcerror.WrongState(
			"run %s waits with version %d of its definition: a retry has changed or repeats what was approved before; look at `switchyard runs get %s` and approve it with --definition-version %d",
			id, version, id, version)
	}
	d, err := ds.signedDecision(ctx, desc, &historyv1.Decision{Workflow: id, Verdict: verdict, Reason: reason})
	if err != nil {
		return "", err
	}
	return id, ds.updater.Send(ctx, id, update, &historyv1.RunCommand{Reason: reason, By: auth.From(ctx).Name, Decision: d})
}

// signedDecision completes and signs a decision of the caller about a described workflow, or returns nil if the caller's identity is
// not verified.
func (ds decisions) signedDecision(ctx context.Context, desc *runview.Description, d *historyv1.Decision) (*historyv1.Decision, error) {
	p := auth.From(ctx)
	if !p.IsVerified() {
		return nil, nil
	}
	d.Execution, d.By, d.Role, d.At = desc.GetWorkflowExecutionInfo().GetFirstRunId(), p.Name, p.Role.Word(), timestamppb.New(ds.now())
	if err := ds.signer.Sign(ctx, d); err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("sign the decision: %w", err))
	}
	return d, nil
}
