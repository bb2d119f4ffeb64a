package web

import (
	"cmp"
	"context"
	"net/http"

	"connectrpc.com/connect"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// approvalForm is the form with which a person fills in the inputs of an approval task.
type approvalForm struct {
	inputForm
	URL, Reason string
	spec        *v1.ApprovalSpec
}

// newApprovalForm returns the form at an address, or nil if the task asks for no inputs. forbidden is why the caller may not approve
// the task, or "".
func newApprovalForm(spec *v1.ApprovalSpec, url string, caller *auth.Principal, forbidden string) *approvalForm {
	if len(spec.GetInputs()) == 0 {
		return nil
	}
	f := &approvalForm{newInputForm(&v1.Definition{Inputs: spec.GetInputs()}), url, "", spec}
	f.Buttons = []button{newButton("Approve", "approve", runService+"ApproveTask", caller)}
	f.Buttons[0].Forbidden = cmp.Or(f.Buttons[0].Forbidden, forbidden)
	return f
}

// whyNotApprover returns why a caller may not decide about a task of a run of owner, or "" if the caller may. It is what the run and
// the gateway answer to such a decision.
func (w *Web) whyNotApprover(task string, spec *v1.ApprovalSpec, owner string, caller *auth.Principal) string {
	switch isSubmitter := caller.Owns(owner); {
	case isSubmitter && w.FourEyes:
		return caller.Name + " submitted the run; the gateway has --four-eyes, so another person must decide about its tasks"
	case !caller.IsVerified():
		return "" // no decision is signed
	default:
		return definition.WhyNotApprover(task, spec.GetApprovers(), caller.Name, caller.Role.Word(), isSubmitter)
	}
}

// postTask approves a task with the submitted inputs.
func (w *Web) postTask(rw http.ResponseWriter, r *http.Request, req request, failed error) {
	source := newTaskSource(w, req)
	defer source.close()
	data, err := source.load(r.Context())
	if err != nil {
		w.writeError(rw, r, err)
		return
	}
	view := data.data.(taskView)
	form := view.Form
	if form == nil {
		w.writeError(rw, r, rpcerror.WrongState("%s is %s and waits for no inputs", taskOf(view.Run.GetId(), view.Name), view.Task.GetState()))
		return
	}
	form.fill(r.PostForm)
	form.Reason = formText(r, reasonField)
	err = failed
	if err == nil {
		err = form.approve(r.Context(), w.services, view.Run.GetId(), view.Name)
	}
	if err == nil {
		redirect(rw, r, req.url(), capitalised(taskOf(view.Run.GetId(), view.Name)+" is approved."))
		return
	}
	form.showError(err, "Nothing was approved")
	w.writeView(rw, r, statusOf(err), data, req, true)
}

// approve checks the inputs and approves the task.
func (f *approvalForm) approve(ctx context.Context, s services, run, task string) error {
	input, err := f.input(&v1.Definition{Inputs: f.spec.GetInputs()})
	if err != nil {
		return err
	}
	if _, err := definition.ApprovalInput(f.spec, input); err != nil {
		return err
	}
	return errorOf(s.runs.ApproveTask(ctx, connect.NewRequest(&v1.ApproveTaskRequest{Id: run, Task: task, Reason: f.Reason, Input: input})))
}
