package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/drawing/graph"
	"switchyard/drawing/svg"
	"switchyard/drawing/timeline"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// Bounds of a report.
const (
	// MaxFailures bounds the failed tasks and instances that are shown individually.
	MaxFailures = 30
	// MaxLines bounds the last lines shown for each.
	MaxLines = 20
	// maxLine bounds a line, and maxValues an input or context, in characters.
	maxLine   = 300
	maxValues = 20_000
	// maxTasks bounds the tasks in the table, the rows in the timeline and the artifacts.
	maxTasks = 1000
)

// Report holds the data of a report.
type Report struct {
	Run    *v1.Run
	Nodes  []graph.Node
	Layout *graph.Layout
	Rows   []svg.Row
	Axis   timeline.Axis
	// Failures are the first MaxFailures of all FailureCount failed tasks and instances.
	Failures     []Failure
	FailureCount int
	// PageURL is the URL at which people open the page, to which artifacts lead, or "" if it is not known.
	PageURL string
	// Now is the time of the report. Its location is the time zone of all times in the report.
	Now time.Time
}

// Failure is a task or an instance that failed.
type Failure struct {
	Name  string
	Task  *v1.Task
	Lines []string // last lines that it printed
	// Missing is why lines are missing, or "" if none are.
	Missing string
}

//go:embed report.html
var page string

//go:embed report.css
var css string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"sign": words.Sign, "line": func(text string) string { return words.Visible(words.OneLine(text)) },
}).Parse(page))

// Write writes the report as an HTML file.
func (r Report) Write(w io.Writer) error { return pageTemplate.Execute(w, r.view()) }

// view is the data of the template.
type view struct {
	Title, State, Error string
	Style               template.CSS
	Facts               []fact
	Graph               template.HTML
	Timeline, Legend    template.HTML
	Tasks               []taskRow
	MoreTasks           int
	Artifacts           []artifactRow
	MoreArtifacts       int
	Failures            []failureView
	MoreFailures        int
	Input, Context      string
	Made                string
}

type fact struct{ Name, Value string }

type taskRow struct {
	Name, State, Tone, Node, Attempt, Elapsed, Note string
	Finally                                         bool
}

type artifactRow struct {
	Task, Name, Size string
	Files            int32
	URL              string // "" if it is not known
}

type failureView struct {
	Name, State, Where, Error, Missing string
	Lines                              []string
}

func (r Report) view() view {
	v := view{
		Title: r.Run.GetId(), State: r.Run.GetState(), Error: r.Run.GetError(), Style: template.CSS(svg.Colours + svg.Rules + css),
		Facts: r.facts(), Input: values(r.Run.GetInput()), Context: values(r.Run.GetContext()), Made: r.time(timestamppb.New(r.Now)),
		Legend:       template.HTML(svg.Legend()),
		MoreFailures: r.FailureCount - len(r.Failures),
	}
	anchor := func(task string) string { return "#task-" + task }
	if r.Layout != nil {
		v.Graph = template.HTML(svg.Graph(r.Layout, r.Nodes, svg.GraphOptions{Name: "graph of the tasks", Href: anchor}))
	}
	rows := r.Rows[:min(len(r.Rows), maxTasks)]
	v.Timeline = template.HTML(svg.Timeline(rows, r.Axis, svg.TimelineOptions{Name: "timeline of the tasks"}))
	order := r.order()
	for _, name := range order[:min(len(order), maxTasks)] {
		t := r.Run.GetTasks()[name]
		v.Tasks = append(v.Tasks, taskRow{name, t.GetState(), words.Tone(t), t.GetNode(), words.Attempt(t), words.Elapsed(t, r.Now), words.Note(t, r.Now), t.GetFinally()})
	}
	v.MoreTasks = len(order) - len(v.Tasks)
	v.Artifacts = r.artifacts(order)
	if v.MoreArtifacts = len(v.Artifacts) - maxTasks; v.MoreArtifacts > 0 {
		v.Artifacts = v.Artifacts[:maxTasks]
	}
	for _, f := range r.Failures {
		v.Failures = append(v.Failures, viewOf(f))
	}
	return v
}

// order returns the names of the tasks in the order of the graph.
func (r Report) order() []string {
	if r.Layout == nil {
		return graph.ByDepth(r.Run.GetTasks())
	}
	order := make([]string, 0, len(r.Nodes))
	for _, i := range r.Layout.Order {
		order = append(order, r.Nodes[i].Name)
	}
	return order
}

// artifacts returns what the tasks have left, in their order. Those of instances are not shown.
func (r Report) artifacts(order []string) []artifactRow {
	var rows []artifactRow
	for _, name := range order {
		for _, a := range r.Run.GetTasks()[name].GetResult().GetArtifacts() {
			row := artifactRow{Task: name, Name: a.GetName(), Size: words.Size(a.GetSize()), Files: a.GetFiles()}
			if r.PageURL != "" {
				row.URL = r.PageURL + "/ui/runs/" + url.PathEscape(r.Run.GetId()) + "/tasks/" + url.PathEscape(name) + "/artifacts/" + url.PathEscape(a.GetName())
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// facts returns the lines at the head of the report.
func (r Report) facts() []fact {
	run := r.Run
	var facts []fact
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, fact{name, words.Visible(words.OneLine(value))})
		}
	}
	add("workflow", run.GetName())
	add("reason", run.GetReason())
	add("problem", run.GetProblem())
	add("created", r.time(run.GetCreatedAt()))
	add("late since", r.time(run.GetLateSince()))
	add("ended", r.time(run.GetCompletedAt()))
	if run.GetCreatedAt() != nil {
		end := r.Now
		if run.GetCompletedAt() != nil {
			end = run.GetCompletedAt().AsTime()
		}
		add("took", words.Duration(end.Sub(run.GetCreatedAt().AsTime())))
	}
	add("by", run.GetSubmittedBy())
	add("trigger", run.GetTrigger())
	add("parent", run.GetParent())
	add("batch", run.GetBatch())
	if run.GetGeneration() > 0 {
		add("generation", fmt.Sprint(run.GetGeneration()))
	}
	if a := run.GetApproval(); a != nil {
		text := a.GetState()
		if a.GetBy() != "" {
			text += " by " + a.GetBy()
		}
		add("approval", words.JoinNote(text, a.GetReason()))
	}
	tasks, instances := map[string]int{}, map[string]int{}
	for _, t := range run.GetTasks() {
		tasks[t.GetState()]++
		for state, n := range t.GetCounts() {
			instances[state] += int(n)
		}
	}
	add("tasks", words.CountStates(tasks))
	add("instances", words.CountStates(instances))
	return facts
}

// time formats a time, or returns "" if it is absent.
func (r Report) time(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().In(r.Now.Location()).Format("2006-01-02 15:04:05 -07:00")
}

func viewOf(f Failure) failureView {
	t := f.Task
	v := failureView{Name: f.Name, State: t.GetState(), Missing: words.Visible(words.OneLine(f.Missing)), Error: clip(plainLines(t.GetError()), MaxLines*maxLine)}
	if v.Error == "" {
		v.Error = t.GetReason()
	}
	if t.GetNode() != "" {
		v.Where = fmt.Sprintf("on %s, attempt %d", t.GetNode(), t.GetAttempt())
	}
	for _, line := range f.Lines[max(0, len(f.Lines)-MaxLines):] {
		v.Lines = append(v.Lines, clip(words.Visible(words.Plain(line)), maxLine))
	}
	return v
}

// plainLines returns a text of several lines in its final form on a terminal.
func plainLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = words.Plain(line)
	}
	return words.Visible(strings.Join(lines, "\n"))
}

// clip cuts a text to at most so many characters.
func clip(text string, most int) string {
	letters := []rune(text)
	if len(letters) <= most {
		return text
	}
	return string(letters[:most]) + "…"
}
