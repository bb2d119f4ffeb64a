package gateway

import (
	"context"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// ApproveTask approves a task that waits for approval.
func (g *Gateway) ApproveTask(ctx context.Context, req *connect.Request[v1.ApproveTaskRequest]) (*connect.Response[v1.ApproveTaskResponse], error) {
	id, err := g.decideTask(ctx, req.Msg.GetId(), req.Msg.GetTask(), names.ApproveUpdate, v1.ApprovalApproved, req.Msg.GetReason())
	return answered(&v1.ApproveTaskResponse{Id: id}, err)
}

// RejectTask rejects a task that waits for approval.
func (g *Gateway) RejectTask(ctx context.Context, req *connect.Request[v1.RejectTaskRequest]) (*connect.Response[v1.RejectTaskResponse], error) {
	id, err := g.decideTask(ctx, req.Msg.GetId(), req.Msg.GetTask(), names.RejectUpdate, v1.ApprovalRejected, req.Msg.GetReason())
	return answered(&v1.RejectTaskResponse{Id: id}, err)
}

// ApproveRun approves a run that waits for approval, which then starts.
func (g *Gateway) ApproveRun(ctx context.Context, req *connect.Request[v1.ApproveRunRequest]) (*connect.Response[v1.ApproveRunResponse], error) {
	id, err := g.decideRun(ctx, req.Msg.GetId(), names.ApproveRunUpdate, v1.ApprovalApproved, req.Msg.GetReason())
	return answered(&v1.ApproveRunResponse{Id: id}, err)
}

// RejectRun rejects a run that waits for approval, which then ends.
func (g *Gateway) RejectRun(ctx context.Context, req *connect.Request[v1.RejectRunRequest]) (*connect.Response[v1.RejectRunResponse], error) {
	id, err := g.decideRun(ctx, req.Msg.GetId(), names.RejectRunUpdate, v1.ApprovalRejected, req.Msg.GetReason())
	return answered(&v1.RejectRunResponse{Id: id}, err)
}

// decideTask sends a decision about a task to its run, or to the child of the run that carries the instance.
func (g *Gateway) decideTask(ctx context.Context, text, task, update, verdict, reason string) (id string, err error) {
	id, err = g.index.Resolve(ctx, text)
	if err != nil {
		return "", err
	}
	decide := func(workflow string) error {
		d, err := g.signedDecision(ctx, &v1.Decision{Workflow: workflow, Task: task, Verdict: verdict, Reason: reason})
		if err != nil {
			return err
		}
		return g.update(ctx, workflow, update, &v1.TaskCommand{Task: task, Reason: reason, By: actor(ctx), Decision: d})
	}
	err = decide(id)
	if rpcerror.CodeOf(err) == connect.CodeNotFound {
		if child := g.childWith(ctx, id, task); child != "" {
			return id, decide(child)
		}
	}
	return id, err
}

// decideRun sends a decision to the run that it is about. The user who submitted the run may not decide.
func (g *Gateway) decideRun(ctx context.Context, text, update, verdict, reason string) (id string, err error) {
	id, err = g.index.Resolve(ctx, text)
	if err != nil {
		return "", err
	}
	desc, err := g.reader.Describe(ctx, id)
	if err != nil {
		return "", err
	}
	if p := auth.From(ctx); p.Owns(runindex.OwnerOf(desc.GetWorkflowExecutionInfo())) {
		return "", connect.NewError(connect.CodePermissionDenied, fmt.Errorf("%s has submitted run %s; another operator decides about it", p.Name, id))
	}
	d, err := g.signedDecision(ctx, &v1.Decision{Workflow: id, Verdict: verdict, Reason: reason})
	if err != nil {
		return "", err
	}
	return id, g.update(ctx, id, update, &v1.RunCommand{Reason: reason, By: actor(ctx), Decision: d})
}

// signedDecision completes and signs a decision of the caller, or returns nil if the caller's identity is not
// verified.
func (g *Gateway) signedDecision(ctx context.Context, d *v1.Decision) (*v1.Decision, error) {
	p := auth.From(ctx)
	if !p.IsVerified() {
		return nil, nil
	}
	desc, err := g.reader.Describe(ctx, d.GetWorkflow())
	if err != nil {
		return nil, err
	}
	d.Execution, d.By, d.Role, d.At = desc.GetWorkflowExecutionInfo().GetFirstRunId(), p.Name, p.Role.Word(), timestamppb.New(g.config.Now())
	if err := g.signer.Sign(ctx, d); err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("sign the decision: %w", err))
	}
	return d, nil
}
