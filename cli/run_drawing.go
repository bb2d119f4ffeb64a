package cli

import (
	"context"
	"time"

	"switchyard/cli/client"
	"switchyard/drawing/graph"
	"switchyard/drawing/report"
	"switchyard/drawing/svg"
	"switchyard/drawing/timeline"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// runDrawing is a run with everything that is needed to draw it.
type runDrawing struct {
	run    *v1.Run
	nodes  []graph.Node
	layout *graph.Layout
	rows   []svg.Row
	axis   timeline.Axis
	// failed holds the failed instances of each task, at most report.MaxFailures of them.
	failed map[string][]*v1.Instance
}

// readDrawing reads a run and its instances. Of a large fan-out it keeps only counts and some failures.
func readDrawing(ctx context.Context, a *client.Client, id string, now time.Time) (*runDrawing, error) {
	run, err := a.RunWithoutOutput(ctx, id)
	if err != nil {
		return nil, err
	}
	isOpen := !v1.IsRunTerminal(run.GetState())
	if run.GetCompletedAt() != nil {
		now = run.GetCompletedAt().AsTime()
	}
	d := &runDrawing{run: run, nodes: graph.NodesOf(run, now), axis: timeline.NewAxis(run.GetCreatedAt().AsTime(), now, isOpen), failed: map[string][]*v1.Instance{}}
	d.layout = graph.NewLayout(d.nodes)
	strips := map[string]*timeline.Lane{}
	for _, n := range d.nodes {
		t := run.GetTasks()[n.Name]
		if t.GetCount() == 0 {
			continue
		}
		t.Instances = nil
		var strip *timeline.Lane
		if t.GetCount() > svg.MaxInstanceRows {
			strip = timeline.NewLane(d.axis.Scale(svg.StripCells))
			strips[n.Name] = strip
		}
		ready := timeline.ReadyAt(run, t)
		err := a.InstancePages(ctx, run.GetId(), n.Name, func(page []*v1.Instance) error {
			for _, i := range page {
				if v1.HasTaskFailed(i) && len(d.failed[n.Name]) < report.MaxFailures {
					d.failed[n.Name] = append(d.failed[n.Name], i)
				}
				if strip == nil {
					t.Instances = append(t.Instances, i)
					continue
				}
				strip.Add(timeline.BarOf(names.InstanceName(n.Name, int(i.GetIndex())), v1.InstanceTask(t, i), ready, now))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	d.rows = svg.Rows(run, d.nodes, d.layout.Order, strips, now)
	return d, nil
}
