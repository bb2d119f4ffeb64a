package web

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"connectrpc.com/connect"

	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

const (
	// explainInterval is the minimum interval between two explanations of a waiting task.
	explainInterval = 5 * time.Second
	// instancePage is the number of instances on a page.
	instancePage = 100
	// instancesInterval is the maximum age of a page of instances.
	instancesInterval = 5 * time.Second
)

// taskParameters are the query parameters of a task page. They select the log and the instances.
var taskParameters = []string{"attempt", "generation", "stream", "state", "page"}

// taskSource produces the data of a task page.
type taskSource struct {
	viewSource
	w         *Web
	req       request
	name      string // of the task or instance
	run       *v1.Run
	of        *v1.Task // the task in the run; for an instance, its task
	yaml      string
	approval  *v1.ApprovalSpec // nil unless the task is of type approval
	reasons   explainer
	events    assignments
	instances instanceList
}

func openTask(w *Web, req request) viewSource { return newTaskSource(w, req) }

func newTaskSource(w *Web, req request) *taskSource {
	s := &taskSource{w: w, req: req, name: req.values["task"]}
	s.reasons.ask = func(ctx context.Context) (*v1.ExplainTaskResponse, error) {
		return messageOfCall(w.services.runs.ExplainTask(ctx, connect.NewRequest(&v1.ExplainTaskRequest{Id: req.values["run"], Task: s.name})))
	}
	s.viewSource = newPolledSource(s.load)
	return s
}

// close cancels a pending explanation.
func (s *taskSource) close() { s.reasons.close() }

// taskView is the data of a task page.
type taskView struct {
	Run      *v1.Run
	Name     string
	Of       string // task of the instance, or "" if it is not an instance
	Task     *v1.Task
	Actions  []Action
	Form     *approvalForm // nil unless the task waits for an approval with inputs
	Attempts []attemptRow
	Why      whyView
	Parents  []parentRow
	Result   resultView
	YAML     string
	Split    *splitView // nil unless the task has fanned out
	Log      *logChoice // nil if the task has no log
}

// shape implements shaped: a fan-out and an approval have different page parts.
func (v taskView) shape() string { return fmt.Sprint(v.Split != nil, v.Log != nil, v.Form != nil) }

// attemptRow is an ended or current attempt.
type attemptRow struct {
	*v1.Attempt
	IsOpen bool
	Log    string // address
	// Workload is what runs the current attempt, or the container of an ended one.
	Workload string
}

// HasExit reports whether the exit code is known.
func (a attemptRow) HasExit() bool { return !a.IsOpen && a.GetExitCode() >= 0 }

// parentRow is an upstream task.
type parentRow struct {
	Run, Name string
	Task      *v1.Task
}

func (s *taskSource) load(ctx context.Context) (viewData, error) {
	run := s.req.values["run"]
	res, err := messageOfCall(s.w.services.runs.GetRunTask(ctx, connect.NewRequest(&v1.GetRunTaskRequest{Id: run, Task: s.name})))
	if err != nil {
		return viewData{}, err
	}
	view := taskView{Name: s.name, Task: res.GetTask()}
	base := s.name
	if task, _, ok := names.ParseInstanceName(s.name); ok && res.GetInstance() != nil {
		base, view.Of = task, task
	}
	if s.run == nil {
		if err := s.loadRun(ctx, base); err != nil {
			return viewData{}, err
		}
	}
	if view.Of != "" {
		view.Task = v1.InstanceTask(s.of, res.GetInstance())
	}
	t := view.Task
	view.Run, view.YAML = s.run, s.yaml
	view.Actions = actionsOf(s.run.GetId(), s.name, t, s.req.caller)
	s.askForApproval(&view)
	view.Attempts = attemptRows(s.req, t)
	view.Result = newResultView(s.req, t.GetResult())
	if view.Parents, err = s.parents(ctx, t); err != nil {
		return viewData{}, err
	}
	view.Why = s.explain(ctx, t)
	if t.Count != nil {
		if view.Split, err = s.instances.load(ctx, s, t); err != nil {
			return viewData{}, err
		}
	}
	if v1.NeedsNode(t.GetType()) && t.Count == nil {
		view.Log = newLogChoice(s.req, s.run, t)
	}
	return viewData{s.name + " of " + s.run.GetId(), "task", view}, nil
}

// loadRun reads what does not change: the run, and the task with its definition.
func (s *taskSource) loadRun(ctx context.Context, base string) error {
	res, err := messageOfCall(s.w.services.runs.GetRun(ctx, connect.NewRequest(&v1.GetRunRequest{Id: s.req.values["run"], Tasks: []string{base}, Brief: true})))
	if err != nil {
		return err
	}
	of := res.GetRun().GetTasks()[base]
	if of == nil {
		of = &v1.Task{}
	}
	def, err := messageOfCall(s.w.services.runs.GetRunDefinition(ctx, connect.NewRequest(&v1.GetRunDefinitionRequest{Id: s.req.values["run"]})))
	if task := v1.TaskNamed(def.GetDefinition(), base); err == nil && task != nil {
		text, err := definition.Print(&v1.Definition{Tasks: map[string]*v1.TaskDefinition{base: task}})
		if err == nil {
			s.yaml = string(text)
		}
		if task.GetType() == v1.TypeApproval {
			s.approval = definition.Approval(task)
		}
	}
	s.run, s.of = res.GetRun(), of
	return nil
}

// askForApproval adds why the caller may not decide about an approval task, and the form of its inputs in the place of a button.
func (s *taskSource) askForApproval(view *taskView) {
	forbidden := s.w.whyNotApprover(s.name, s.approval, s.run.GetSubmittedBy(), s.req.caller)
	view.Actions = slices.DeleteFunc(view.Actions, func(a Action) bool {
		if a.Verb != "approve-task" {
			return false
		}
		view.Form = newApprovalForm(s.approval, s.req.path, s.req.caller, forbidden)
		return view.Form != nil
	})
	forbidDecisions(view.Actions, forbidden)
}

// parents returns the upstream tasks of a task with their states.
func (s *taskSource) parents(ctx context.Context, t *v1.Task) ([]parentRow, error) {
	if len(t.GetDependsOn()) == 0 {
		return nil, nil
	}
	some := t.GetDependsOn()[:min(len(t.GetDependsOn()), instancePage)]
	res, err := messageOfCall(s.w.services.runs.GetRun(ctx, connect.NewRequest(&v1.GetRunRequest{Id: s.run.GetId(), Tasks: some, Brief: true})))
	if err != nil {
		return nil, err
	}
	var rows []parentRow
	for _, name := range slices.Sorted(slices.Values(some)) {
		if p := res.GetRun().GetTasks()[name]; p != nil {
			rows = append(rows, parentRow{s.run.GetId(), name, p})
		}
	}
	return rows, nil
}

// attemptRows returns the attempts of a task, newest first, including a current one.
func attemptRows(req request, t *v1.Task) []attemptRow {
	var rows []attemptRow
	row := func(a *v1.Attempt, isOpen bool) attemptRow {
		workload := a.GetContainer()
		if isOpen {
			workload = words.Workload(t.GetWorkload())
		}
		return attemptRow{a, isOpen, withParameter(req.path, "attempt", fmt.Sprint(a.GetAttempt())) + "#log", workload}
	}
	ended := t.GetAttempts()
	if t.GetNode() != "" && !v1.HasTaskEnded(t) && !v1.IsTaskWaiting(t.GetState()) {
		rows = append(rows, row(&v1.Attempt{Attempt: t.GetAttempt(), Node: t.GetNode(), State: t.GetState(), AssignedAt: t.GetAssignedAt(), StartedAt: t.GetStartedAt(), Error: t.GetNotice()}, true))
	} else if len(ended) == 0 && t.GetNode() != "" && v1.HasTaskEnded(t) { // an instance with only one attempt
		r := t.GetResult()
		rows = append(rows, row(&v1.Attempt{
			Attempt: t.GetAttempt(), Node: t.GetNode(), State: t.GetState(), Reason: t.GetReason(), Error: t.GetError(), ExitCode: r.GetExitCode(),
			AssignedAt: t.GetAssignedAt(), StartedAt: t.GetStartedAt(), CompletedAt: t.GetCompletedAt(), Container: r.GetContainer(),
		}, false))
	}
	for _, a := range slices.Backward(ended) {
		rows = append(rows, row(a, false))
	}
	return rows
}

// messageOfCall returns the message of a response.
func messageOfCall[M any](res *connect.Response[M], err error) (*M, error) {
	if err != nil {
		return nil, err
	}
	return res.Msg, nil
}

// splitView is a page of the instances of a task.
type splitView struct {
	Tabs []instanceTab
	Rows []instanceRow
	Next string // address of the next page
}

// instanceTab is a link to the instances in a state.
type instanceTab struct {
	State   string // empty means all
	Count   int
	URL     string
	Current bool
}

// instanceRow is a row of the instance list.
type instanceRow struct {
	Run, Name string
	*v1.Instance
}

// LiveID returns the id of the block.
func (r instanceRow) LiveID() string { return fmt.Sprintf("instance-%d", r.GetIndex()) }

// instanceList caches a page of instances until their states change or instancesInterval has passed.
type instanceList struct {
	view   *splitView
	counts map[string]int32
	at     time.Time
}

func (l *instanceList) load(ctx context.Context, s *taskSource, t *v1.Task) (*splitView, error) {
	if l.view != nil && maps.Equal(l.counts, t.GetCounts()) && time.Since(l.at) < instancesInterval {
		return l.view, nil
	}
	state := s.req.query.Get("state")
	res, err := messageOfCall(s.w.services.runs.ListInstances(ctx, connect.NewRequest(&v1.ListInstancesRequest{
		Id: s.run.GetId(), Task: s.name, State: state, PageSize: instancePage, PageToken: s.req.query.Get("page"),
	})))
	if err != nil {
		return nil, err
	}
	view := &splitView{Tabs: []instanceTab{{"", int(t.GetCount()), withParameter(s.req.url(), "state", ""), state == ""}}}
	for _, word := range v1.TaskStates() {
		if n := t.GetCounts()[word]; n > 0 || word == state {
			view.Tabs = append(view.Tabs, instanceTab{word, int(n), withParameter(s.req.url(), "state", word), word == state})
		}
	}
	for _, i := range res.GetItems() {
		i.Result = nil
		view.Rows = append(view.Rows, instanceRow{s.run.GetId(), names.InstanceName(s.name, int(i.GetIndex())), i})
	}
	if token := res.GetNextPageToken(); token != "" {
		view.Next = withParameter(s.req.url(), "page", token)
	}
	l.view, l.counts, l.at = view, maps.Clone(t.GetCounts()), time.Now()
	return view, nil
}
