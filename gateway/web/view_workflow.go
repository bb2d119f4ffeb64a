package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
)

const (
	// recentRuns is the number of runs on a workflow page.
	recentRuns = 10
	// maxReferences bounds how many referenced workflows a workflow page looks up.
	maxReferences = 20
)

// workflowView is the data of a workflow page.
type workflowView struct {
	Name, URL string
	Facts     workflowFacts
	Text      definitionText
	Runs      []workflowRun
	Schedule  scheduleView
	Form      inputForm
	Plan      *planView
	Edit      link
	Delete    Action
}

// workflowFacts is the data of the fact list of a workflow.
type workflowFacts struct {
	*v1.Definition
	Updated *timestamppb.Timestamp
}

// definitionText is the YAML of a definition with its problems and graph.
type definitionText struct {
	Listing *listing
	Notes   []lineNote
	Graph   definitionGraph
}

// workflowRun is a run of the workflow.
type workflowRun struct{ *v1.Run }

// LiveID returns the id of the block.
func (r workflowRun) LiveID() string { return "run-" + r.GetId() }

// Why returns the error of the run, or why it makes no progress.
func (r workflowRun) Why() string {
	if r.GetError() != "" {
		return r.GetError()
	}
	return r.GetProblem()
}

// workflowLoader loads the data of a workflow page. It caches the text of the definition until the definition changes.
type workflowLoader struct {
	w    *Web
	req  request
	def  *v1.Definition
	text definitionText
}

func openWorkflow(w *Web, req request) viewSource {
	loader := &workflowLoader{w: w, req: req}
	return newPolledSource(func(ctx context.Context) (viewData, error) {
		view, err := loader.load(ctx)
		if err != nil {
			return viewData{}, err
		}
		return viewData{"Workflow " + view.Name, "workflow", view}, nil
	})
}

// load returns the current data of the page.
func (l *workflowLoader) load(ctx context.Context) (workflowView, error) {
	name, caller, s := l.req.values["workflow"], l.req.caller, l.w.services
	stored, err := s.workflows.GetWorkflow(ctx, connect.NewRequest(&v1.GetWorkflowRequest{Name: name}))
	if err != nil {
		return workflowView{}, err
	}
	def := stored.Msg.GetDefinition()
	if !proto.Equal(def, l.def) {
		if l.text, err = l.w.describe(ctx, def); err != nil {
			return workflowView{}, err
		}
		l.def = def
	}
	view := workflowView{
		Name: name, URL: workflowURL(name), Facts: workflowFacts{def, storedAt(stored.Msg.GetUpdatedAt())}, Text: l.text, Form: newInputForm(def),
		Edit:   newLink("Edit", withParameter(editorPath, "from", name), workflowService+"PutWorkflow", caller),
		Delete: newAction("delete-workflow", name, caller, "workflow", name),
	}
	view.Form.Buttons = []button{
		newButton("Run now", doRun, workflowService+"TriggerWorkflow", caller), newButton("Preview", doPreview, runService+"PlanRun", caller),
	}
	runs, err := s.runs.ListRuns(ctx, connect.NewRequest(&v1.ListRunsRequest{Name: name, PageSize: recentRuns}))
	if err != nil {
		return workflowView{}, err
	}
	for _, run := range runs.Msg.GetItems() {
		view.Runs = append(view.Runs, workflowRun{run})
	}
	if def.GetSchedule() != nil {
		schedule, err := s.schedules.GetSchedule(ctx, connect.NewRequest(&v1.GetScheduleRequest{Name: name}))
		if err != nil && rpcerror.CodeOf(err) != connect.CodeNotFound {
			return workflowView{}, err
		}
		if err == nil {
			view.Schedule = scheduleView{Schedule: schedule.Msg.GetSchedule()}
		}
	}
	return view, nil
}

// describe returns the text of a definition with its problems and warnings.
func (w *Web) describe(ctx context.Context, def *v1.Definition) (definitionText, error) {
	text, err := definition.Print(def)
	if err != nil {
		return definitionText{}, err
	}
	// The validation rules may have changed since the definition was stored.
	checked, err := definition.ParseChecked(def.GetName()+".yaml", text)
	var problems source.Problems
	if err != nil {
		problems = problemsOf(err)
	}
	missing, err := w.missingWorkflows(ctx, checked.Stored)
	if err != nil {
		return definitionText{}, err
	}
	notes := notesOf(problems, slices.Concat(checked.Warnings, missing))
	return definitionText{newListing("Definition of "+def.GetName(), string(text), notes), notes, newDefinitionGraph(def, string(text))}, nil
}

// missingWorkflows returns a warning for each place that names an unknown workflow.
func (w *Web) missingWorkflows(ctx context.Context, places []definition.StoredReference) (missing source.Problems, err error) {
	for _, place := range places[:min(len(places), maxReferences)] {
		_, err := w.services.workflows.GetWorkflow(ctx, connect.NewRequest(&v1.GetWorkflowRequest{Name: place.Name}))
		switch code := rpcerror.CodeOf(err); {
		case err == nil:
		case code == connect.CodeNotFound || code == connect.CodeInvalidArgument:
			problem := proto.CloneOf(place.Place)
			problem.Message = fmt.Sprintf("no workflow is stored under the name %q", place.Name)
			missing = append(missing, problem)
		default:
			return nil, err
		}
	}
	return missing, nil
}

// Buttons of the workflow form.
const (
	doRun     = "run"
	doPreview = "preview"
)

// postWorkflow starts a run of a stored workflow, or shows its plan.
func (w *Web) postWorkflow(rw http.ResponseWriter, r *http.Request, req request, failed error) {
	ctx := r.Context()
	view, err := (&workflowLoader{w: w, req: req}).load(ctx)
	if err != nil {
		w.writeError(rw, r, err)
		return
	}
	view.Form.fill(r.PostForm)
	err = failed
	if err == nil {
		err = w.handleWorkflowForm(rw, r, &view)
		if err == nil && view.Plan == nil {
			return // the response redirects to the new run
		}
	}
	view.Form.showError(err, "Nothing was started")
	w.writeView(rw, r, statusOf(err), viewData{"Workflow " + view.Name, "workflow", view}, req, true)
}

// handleWorkflowForm handles the submitted form: it redirects to a new run, or sets the plan of the view.
func (w *Web) handleWorkflowForm(rw http.ResponseWriter, r *http.Request, view *workflowView) error {
	input, err := view.Form.input(view.Facts.Definition)
	if err != nil {
		return err
	}
	if r.PostForm.Get(doField) == doPreview {
		plan, err := w.services.runs.PlanRun(r.Context(), connect.NewRequest(&v1.PlanRunRequest{
			Submit: &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Workflow{Workflow: view.Name}, Input: input},
		}))
		if err != nil {
			return err
		}
		view.Plan = newPlanView(plan.Msg)
		return nil
	}
	res, err := w.services.workflows.TriggerWorkflow(r.Context(), connect.NewRequest(&v1.TriggerWorkflowRequest{
		Name: view.Name, Input: input, IdempotencyKey: formKey(r, view.Name, input),
	}))
	if err != nil {
		return err
	}
	redirect(rw, r, runURL(res.Msg.GetId()), startNotice(res.Msg.GetId(), res.Msg.GetExisted()))
	return nil
}

// startNotice returns the notice for the page of a run that a form has started.
func startNotice(run string, existed bool) string {
	if existed {
		return "This form has already started run " + run + " already."
	}
	return "Run " + run + " has been started."
}
