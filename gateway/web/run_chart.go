package web

import (
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/drawing/graph"
	"switchyard/drawing/svg"
	"switchyard/drawing/timeline"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// steps is the number of steps into which a time axis is divided. Open spans are drawn up to the end of the current step, so
// that they need not be redrawn each time. The script draws them exactly.
const steps = 40

// runChart draws the graph and the timeline of a run. It keeps the layout of the graph, which depends only on names and
// dependencies.
type runChart struct {
	names  []string
	after  [][]string
	layout *graph.Layout
	shape  string
}

// chartView is a drawn chart.
type chartView struct {
	Graph template.HTML
	Nodes []drawnElement // of the graph
	Axis  timeline.Axis
	Ticks template.HTML
	Lanes []drawnElement
}

// From returns the start of the axis in milliseconds since 1970.
func (c chartView) From() string { return strconv.FormatInt(c.Axis.From.UnixMilli(), 10) }

// To returns the end of the axis in milliseconds since 1970.
func (c chartView) To() string { return strconv.FormatInt(c.Axis.To.UnixMilli(), 10) }

// drawnElement is a part of a drawing that is updated independently. Its HTML is escaped.
type drawnElement struct {
	ID   string
	HTML template.HTML
}

// LiveID returns the id of the block.
func (e drawnElement) LiveID() string { return e.ID }

// draw draws tasks of a run with the instances of its fan-outs. now is the current time, or the end of the run.
func (c *runChart) draw(run *v1.Run, nodes []graph.Node, instances map[string][]*v1.Instance, now time.Time) chartView {
	c.arrange(nodes)
	open := !v1.IsRunTerminal(run.GetState())
	axis := timeline.NewAxis(run.GetCreatedAt().AsTime(), now, open)
	if open {
		now = nextStep(axis, now)
	}
	run = withInstances(run, instances)
	rows := svg.Rows(run, nodes, c.layout.Order, strips(run, instances, axis, now), now)
	href := func(task string) string { return taskURL(run.GetId(), task) }
	options := svg.GraphOptions{Name: "graph of run " + run.GetId(), Href: href}
	view := chartView{Axis: axis, Graph: template.HTML(svg.Graph(c.layout, nodes, options)), Ticks: template.HTML(svg.AxisRow(axis))}
	for i, n := range nodes {
		view.Nodes = append(view.Nodes, drawnElement{"n-" + n.Name, template.HTML(svg.Node(c.layout, nodes, i, options))})
	}
	for _, r := range rows {
		if last := len(r.Bar.Spans) - 1; last >= 0 && r.Bar.Spans[last].Open && r.Bar.Spans[last].Why.Word != "" {
			r.Note = timeline.Label(r.Bar.Spans[last].Why.Word)
		}
		lane := svg.Lane(r, axis, svg.TimelineOptions{Href: func(r svg.Row) string { return href(r.Name) }})
		view.Lanes = append(view.Lanes, drawnElement{r.ID(), template.HTML(lane)})
	}
	return view
}

// arrange computes the layout and shape of the graph, unless the nodes and edges are unchanged.
func (c *runChart) arrange(nodes []graph.Node) {
	isSame := c.layout != nil && len(nodes) == len(c.names)
	for i := 0; isSame && i < len(nodes); i++ {
		isSame = nodes[i].Name == c.names[i] && slices.Equal(nodes[i].After, c.after[i])
	}
	if isSame {
		return
	}
	c.names, c.after, c.layout = nil, nil, graph.NewLayout(nodes)
	var shape strings.Builder
	for _, n := range nodes {
		c.names, c.after = append(c.names, n.Name), append(c.after, n.After)
		shape.WriteString(n.Name + "<" + strings.Join(n.After, ",") + ";")
	}
	c.shape = digest(shape.String())
}

// nextStep returns the end of the axis step that contains a time.
func nextStep(a timeline.Axis, at time.Time) time.Time {
	step := max(a.To.Sub(a.From)/steps, time.Millisecond)
	return a.From.Add((at.Sub(a.From)/step + 1) * step)
}

// withInstances returns a copy of a run whose small fan-outs have all their instances. Unknown instances count as pending.
func withInstances(run *v1.Run, instances map[string][]*v1.Instance) *v1.Run {
	tasks := make(map[string]*v1.Task, len(run.GetTasks()))
	for name, t := range run.GetTasks() {
		if words.IsFannedOut(t) && t.GetCount() <= svg.MaxInstanceRows {
			t = proto.CloneOf(t)
			for i, instance := range instances[name] {
				if instance == nil {
					instance = &v1.Instance{Index: int32(i), State: v1.TaskPending}
				}
				t.Instances = append(t.Instances, instance)
			}
		}
		tasks[name] = t
	}
	return &v1.Run{Id: run.GetId(), State: run.GetState(), CreatedAt: run.GetCreatedAt(), CompletedAt: run.GetCompletedAt(), Tasks: tasks}
}

// strips returns the lanes of large fan-outs.
func strips(run *v1.Run, instances map[string][]*v1.Instance, axis timeline.Axis, now time.Time) map[string]*timeline.Lane {
	lanes := map[string]*timeline.Lane{}
	for name, t := range run.GetTasks() {
		if t.GetCount() <= svg.MaxInstanceRows {
			continue
		}
		lane, ready := timeline.NewLane(timeline.Scale{From: axis.From, To: axis.To, Cells: svg.StripCells}), timeline.ReadyAt(run, t)
		for i, instance := range instances[name] {
			if instance != nil {
				lane.Add(timeline.BarOf(names.InstanceName(name, i), v1.InstanceTask(t, instance), ready, now))
			}
		}
		lanes[name] = lane
	}
	return lanes
}
