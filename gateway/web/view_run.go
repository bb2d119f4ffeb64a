package web

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/drawing/graph"
	"switchyard/drawing/words"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"
)

// maxDrawn is the number of tasks that a run page draws by default. The parameter tasks=all draws all of them.
const (
	maxDrawn                 = 300
	tasksParameter, allTasks = "tasks", "all"
)

// runSource produces the data of a run page.
type runSource struct {
	w     *Web
	req   request
	watch *runWatch
	chart runChart
	pause time.Duration // minimum time to the next drawing
	drawn time.Time     // when the last drawing was ready
	// ends is when the time axis of the last drawing runs out, or zero if never.
	ends time.Time
	// defined is the run's definition, with tasks that stand in for tasks that the run does not report yet.
	defined  *v1.Definition
	attempts runAttempts
}

func openRun(w *Web, req request) viewSource {
	return &runSource{w: w, req: req, attempts: runAttempts{services: w.services, marks: map[string]string{}, tasks: map[string]*v1.Task{}}}
}

// close stops the watch of the run.
func (s *runSource) close() {
	if s.watch != nil {
		s.watch.close()
	}
}

// next returns the drawn run once the run has changed or its time axis has run out.
func (s *runSource) next(ctx context.Context) (viewData, error) {
	if s.watch == nil {
		s.watch = watchRun(ctx, s.w.services, s.req.values["run"])
	}
	for {
		if err := s.await(ctx); err != nil {
			return viewData{}, err
		}
		began := time.Now()
		state, err := s.watch.state()
		if err != nil || state.run == nil {
			if err != nil {
				return viewData{}, err
			}
			continue
		}
		s.addDefined(ctx, state)
		s.attempts.add(ctx, state)
		view := s.draw(state)
		s.drawn = time.Now()
		s.pause = max(drawInterval, shareOfCore*s.drawn.Sub(began))
		return viewData{"Run " + state.run.GetId(), "run", view}, nil
	}
}

// await waits for a change of the run or the end of its time axis, and for the pause after the last drawing.
func (s *runSource) await(ctx context.Context) error {
	var ends <-chan time.Time
	if !s.ends.IsZero() {
		timer := time.NewTimer(time.Until(s.ends))
		defer timer.Stop()
		ends = timer.C
	}
	select {
	case <-s.watch.changed:
	case <-ends:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return sleep(ctx, s.pause-time.Since(s.drawn))
}

// addDefined adds pending tasks for those that the run has but does not report yet.
func (s *runSource) addDefined(ctx context.Context, state runState) {
	if state.total <= len(state.tasks) {
		return
	}
	if s.defined == nil {
		res, err := s.w.services.runs.GetRunDefinition(ctx, connect.NewRequest(&v1.GetRunDefinitionRequest{Id: s.req.values["run"]}))
		if err != nil {
			return // they appear once the run reports them
		}
		s.defined = res.Msg.GetDefinition()
	}
	for name, t := range v1.AllTasks(s.defined) {
		if state.tasks[name] == nil {
			state.tasks[name] = &v1.Task{State: v1.TaskPending, Type: t.GetType(), DependsOn: t.GetDependsOn(), Finally: v1.IsInFinally(s.defined, name)}
		}
	}
}

// runView is the data of a run page.
type runView struct {
	Run    *v1.Run
	Counts []words.StateCount // of tasks
	Total  int
	// Instances describes the counts of all instances, or is "" if there are none.
	Instances string
	Chart     chartView
	Actions   []Action
	// Hidden is the number of tasks that are not drawn.
	Hidden int
	// Input and Context are JSON texts.
	Input, Context string

	drawn string // the shape of the graph
}

func (v runView) shape() string { return v.drawn }

// draw returns the view of a state.
func (s *runSource) draw(state runState) runView {
	run := &v1.Run{
		Id: state.run.GetId(), State: state.run.GetState(), CreatedAt: state.run.GetCreatedAt(), CompletedAt: state.run.GetCompletedAt(), Tasks: state.tasks,
	}
	nodes := graph.NodesOf(run, time.Time{})
	shown := nodes
	if len(nodes) > maxDrawn && s.req.query.Get(tasksParameter) != allTasks {
		shown = mostInteresting(nodes, maxDrawn)
	}
	counts, instances, total := map[string]int{}, map[string]int{}, 0
	for _, t := range state.tasks {
		counts[t.GetState()]++
		for word, n := range t.GetCounts() {
			instances[word] += int(n)
			total += int(n)
		}
	}
	now := s.w.Now()
	if end := state.run.GetCompletedAt(); end != nil {
		now = end.AsTime()
	}
	view := runView{
		Run: state.run, Counts: words.StateCounts(counts), Total: max(state.total, len(state.tasks)), Hidden: len(nodes) - len(shown),
		Actions: actionsOfRun(state.run, s.req.caller), Input: jsonText(state.run.GetInput()), Context: jsonText(state.run.GetContext()),
	}
	if total > 0 {
		view.Instances = plural(total, "instance") + ": " + words.CountStates(instances)
	}
	view.Chart = s.chart.draw(run, shown, state.instances, now)
	view.drawn = s.chart.shape
	s.ends = time.Time{}
	if !v1.IsRunTerminal(state.run.GetState()) {
		s.ends = view.Chart.Axis.To
	}
	return view
}

// actionsOfRun returns the buttons for the actions that the state of a run allows.
func actionsOfRun(run *v1.Run, caller *auth.Principal) []Action {
	verbs := map[string][]string{
		v1.RunPendingApproval: {"approve-run", "reject-run", "cancel-run"},
		v1.RunPending:         {"cancel-run"},
		v1.RunRunning:         {"pause-run", "cancel-run"},
		v1.RunPaused:          {"resume-run", "cancel-run"},
		v1.RunCompleted:       {"rerun-run"},
	}[run.GetState()]
	if verbs == nil {
		verbs = []string{"retry-run", "rerun-run"} // failed, cancelled or rejected
	}
	var actions []Action
	for _, verb := range verbs {
		if verb == "cancel-run" && phrase.IsInFinally(run.GetError()) {
			verb = "cancel-finally"
		}
		if verb == "approve-run" {
			actions = append(actions, approveRun(run, caller))
			continue
		}
		actions = append(actions, newAction(verb, run.GetId(), caller, "run", run.GetId()))
	}
	return actions
}

// maxJSON bounds the displayed JSON of an object, in bytes.
const maxJSON = 64 << 10

// jsonText formats an object as indented JSON, cut to maxJSON, or returns "" if it has no fields.
func jsonText(object *structpb.Struct) string {
	if len(object.GetFields()) == 0 {
		return ""
	}
	text, err := json.MarshalIndent(object.AsMap(), "", "  ")
	if err != nil {
		return err.Error()
	}
	if len(text) > maxJSON {
		return strings.ToValidUTF8(string(text[:maxJSON]), "") + "\n... and more: `switchyard runs get` prints all of it"
	}
	return string(text)
}

// mostInteresting returns the n most interesting nodes by state, in their original order.
func mostInteresting(nodes []graph.Node, n int) []graph.Node {
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(words.Interest(nodes[a].Tone()), words.Interest(nodes[b].Tone()))
	})
	order = order[:n]
	slices.Sort(order)
	picked := make([]graph.Node, 0, n)
	for _, i := range order {
		picked = append(picked, nodes[i])
	}
	return picked
}
