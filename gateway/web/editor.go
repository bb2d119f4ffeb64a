package web

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
)

// editorPath is the path of the definition editor. It is outside the path of workflows because a workflow may have any name.
const editorPath = "/ui/editor"

// Buttons of the editor.
const (
	doCheck = "check"
	doOnce  = "once"
	doStore = "store"
)

// newDocument is the initial document of the editor.
const newDocument = `name: hello
tasks:
  greet:
    type: shell
    spec:
      command: echo Hello, world
`

// editorView is the data of the editor page.
type editorView struct {
	// From is the name of the stored workflow being edited, or "".
	From      string
	Text      string
	Input     string
	IsReplace bool
	Buttons   []button
	// Notes are the problems and warnings of the document and its input. Listing shows them at their lines; it is nil if
	// there are none.
	Notes   []lineNote
	Listing *listing
	// Good is the success message of a check; Failed is why nothing was done. Both may be empty.
	Good, Failed string
	Plan         *planView
}

func newEditorView(caller *auth.Principal) editorView {
	return editorView{Buttons: []button{
		{Text: "Check", Value: doCheck},
		newButton("Run once", doOnce, runService+"SubmitRun", caller),
		newButton("Store", doStore, workflowService+"PutWorkflow", caller),
	}}
}

// showEditor shows the editor with the initial document or a stored workflow.
func (w *Web) showEditor(rw http.ResponseWriter, r *http.Request, req request) {
	view := newEditorView(req.caller)
	view.Text = newDocument
	if view.From = req.query.Get("from"); view.From != "" {
		res, err := w.services.workflows.GetWorkflow(r.Context(), connect.NewRequest(&v1.GetWorkflowRequest{Name: view.From}))
		if err != nil {
			w.writeError(rw, r, err)
			return
		}
		text, err := definition.Print(res.Msg.GetDefinition())
		if err != nil {
			w.writeError(rw, r, err)
			return
		}
		view.Text, view.IsReplace = string(text), true
	}
	w.writeEditor(rw, r, req, view, nil)
}

func (w *Web) writeEditor(rw http.ResponseWriter, r *http.Request, req request, view editorView, err error) {
	title := "New workflow"
	if view.From != "" {
		title = "Edit " + view.From
	}
	w.writeView(rw, r, statusOf(err), viewData{title, "editor", view}, req, false)
}

// postEditor checks, runs or stores the submitted document.
func (w *Web) postEditor(rw http.ResponseWriter, r *http.Request, req request, failed error) {
	view := newEditorView(req.caller)
	view.From, view.Text, view.Input = req.query.Get("from"), formText(r, "document"), formText(r, documentField)
	view.IsReplace = r.PostForm.Get("replace") != ""
	if failed != nil {
		view.Failed = messageOf(failed)
		w.writeEditor(rw, r, req, view, failed)
		return
	}
	checked, err := definition.ParseChecked("", []byte(view.Text))
	var input *structpb.Struct
	var to, notice string
	if err == nil {
		input, err = definition.ParseInput(checked.Definition, nil, []byte(view.Input))
	}
	if err == nil {
		switch r.PostForm.Get(doField) {
		case doStore:
			to, notice, err = w.storeDocument(r.Context(), view)
		case doOnce:
			to, notice, err = w.runDocument(r, view, input)
		default:
			view.Plan, err = w.planDocument(r.Context(), req.caller, view, input)
			view.Good = "The definition is valid: " + plural(v1.CountTasks(checked.Definition), "task") + "."
		}
	}
	if to != "" && err == nil {
		redirect(rw, r, to, notice)
		return
	}
	view.showError(err, checked.Warnings, r.PostForm.Get(doField))
	w.writeEditor(rw, r, req, view, err)
}

// showError shows an error and the warnings of the definition.
func (v *editorView) showError(err error, warnings source.Problems, done string) {
	problems := problemsOf(err)
	if v.Plan != nil {
		warnings = v.Plan.GetWarnings()
	}
	v.Notes = notesOf(problems, warnings)
	if err != nil {
		v.Failed = map[string]string{doOnce: "Nothing was started.", doStore: "Nothing was stored."}[done]
		switch ofDefinition := aboutDefinition(problems); {
		case done == doCheck && len(ofDefinition) == 0:
			v.Failed = "The input is not valid."
		case done == doCheck:
			v.Good, v.Failed = "", "The definition has "+plural(len(ofDefinition), "problem")+"."
		}
	}
	if slices.ContainsFunc(v.Notes, func(n lineNote) bool { return n.GetLine() > 0 && !isOfInputs(n.Problem) }) {
		v.Listing = newListing("The document with its problems", v.Text, slices.DeleteFunc(slices.Clone(v.Notes), func(n lineNote) bool { return isOfInputs(n.Problem) }))
	}
}

func (w *Web) storeDocument(ctx context.Context, view editorView) (to, notice string, err error) {
	res, err := w.services.workflows.PutWorkflow(ctx, connect.NewRequest(&v1.PutWorkflowRequest{
		Source: &v1.PutWorkflowRequest_Document{Document: view.Text}, Replace: view.IsReplace,
	}))
	if err != nil {
		return "", "", err
	}
	notice = "Workflow " + res.Msg.GetName() + " is stored."
	if res.Msg.GetReplaced() {
		notice = "Workflow " + res.Msg.GetName() + " is replaced."
	}
	return workflowURL(res.Msg.GetName()), notice, nil
}

func (w *Web) runDocument(r *http.Request, view editorView, input *structpb.Struct) (to, notice string, err error) {
	res, err := w.services.runs.SubmitRun(r.Context(), connect.NewRequest(&v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Document{Document: view.Text}, Input: input, IdempotencyKey: formKey(r, view.Text, input),
	}))
	if err != nil {
		return "", "", err
	}
	return runURL(res.Msg.GetId()), startNotice(res.Msg.GetId(), res.Msg.GetExisted()), nil
}

// planDocument returns the plan of a run of the document, or nil if the caller may not start runs.
func (w *Web) planDocument(ctx context.Context, caller *auth.Principal, view editorView, input *structpb.Struct) (*planView, error) {
	if forbiddenReason("", runService+"PlanRun", caller) != "" {
		return nil, nil
	}
	res, err := w.services.runs.PlanRun(ctx, connect.NewRequest(&v1.PlanRunRequest{
		Submit: &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: view.Text}, Input: input},
	}))
	if err != nil {
		return nil, err
	}
	return newPlanView(res.Msg), nil
}

// Rows returns the height of the document field, in lines.
func (v editorView) Rows() int { return min(max(16, strings.Count(v.Text, "\n")+2), 40) }
