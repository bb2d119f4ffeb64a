package cli

import (
	"context"
	"maps"
	"slices"
	"time"

	"switchyard/cli/client"
	"switchyard/cli/tui"
	"switchyard/drawing/timeline"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// maxInstanceRows is the most instances of a task that get a row each. Above it, each node gets one row.
const maxInstanceRows = 20

// chart holds the timeline of a run.
type chart struct {
	status *tui.Status
	run    *v1.Run
	scale  timeline.Scale
	rows   []tui.Row
	bars   [][]timeline.Span // bars of the rows; nil for a row of many instances
}

// readTimeline reads the timeline of a run: its tasks, and only counts for a large fan-out.
func readTimeline(ctx context.Context, a *client.Client, id string, cells int, now time.Time) (*chart, error) {
	run, err := a.RunWithoutOutput(ctx, id)
	if err != nil {
		return nil, err
	}
	if run.GetCompletedAt() != nil {
		now = run.GetCompletedAt().AsTime()
	}
	c := &chart{status: tui.StatusOf(run), run: run, scale: timeline.Scale{From: run.GetCreatedAt().AsTime(), To: now, Cells: cells}}
	for _, name := range slices.Sorted(maps.Keys(run.GetTasks())) {
		task := run.GetTasks()[name]
		ready := timeline.ReadyAt(run, task)
		if !words.IsFannedOut(task) {
			c.single(timeline.BarOf(name, task, ready, now))
			continue
		}
		add := func(bar timeline.Bar) { c.single(bar) }
		var byNode map[string]*timeline.Lane
		if task.GetCount() > maxInstanceRows {
			byNode = map[string]*timeline.Lane{}
			add = func(bar timeline.Bar) {
				if len(bar.Spans) == 0 {
					return
				}
				if byNode[bar.Node] == nil {
					byNode[bar.Node] = timeline.NewLane(c.scale)
				}
				byNode[bar.Node].Add(bar)
			}
		}
		if task.GetCount() > 0 {
			err := a.InstancePages(ctx, run.GetId(), name, func(page []*v1.Instance) error {
				for _, i := range page {
					add(timeline.BarOf(names.InstanceName(name, int(i.GetIndex())), v1.InstanceTask(task, i), ready, now))
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
		for _, node := range slices.Sorted(maps.Keys(byNode)) {
			c.rows, c.bars = append(c.rows, tui.Row{Name: name, Node: node, Lane: byNode[node]}), append(c.bars, nil)
		}
	}
	return c, nil
}

// single adds a row for one bar. A bar that has not been queued yet gets none.
func (c *chart) single(bar timeline.Bar) {
	if len(bar.Spans) == 0 {
		return
	}
	lane := timeline.NewLane(c.scale)
	lane.Add(bar)
	c.rows = append(c.rows, tui.Row{Name: bar.Task, Node: bar.Node, State: bar.State, Lane: lane})
	c.bars = append(c.bars, bar.Spans)
}

// timelineJSON is a timeline as -o json prints it.
type timelineJSON struct {
	ID   string    `json:"id"`
	From string    `json:"from"`
	To   string    `json:"to"`
	Rows []rowJSON `json:"rows"`
}

type rowJSON struct {
	Task         string     `json:"task"`
	Node         string     `json:"node"`
	State        string     `json:"state"` // "" for several instances
	Instances    int        `json:"instances"`
	From         string     `json:"from"`
	To           string     `json:"to"`
	QueueSeconds float64    `json:"queueSeconds"`
	WaitSeconds  float64    `json:"waitSeconds"`
	RunSeconds   float64    `json:"runSeconds"`
	Spans        []spanJSON `json:"spans"` // none for several instances
}

type spanJSON struct {
	Kind    string `json:"kind"`
	From    string `json:"from"`
	To      string `json:"to"`
	Node    string `json:"node"`
	Attempt int32  `json:"attempt"`
	Failed  bool   `json:"failed"`
	Reason  string `json:"reason"` // what the task waits for, or "" if unknown
}

func (c *chart) document() timelineJSON {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	d := timelineJSON{ID: c.run.GetId(), From: at(c.scale.From), To: at(c.scale.To), Rows: []rowJSON{}}
	for i, r := range c.rows {
		row := rowJSON{
			Task: r.Name, Node: r.Node, State: r.State, Instances: r.Lane.Bars, From: at(r.Lane.From), To: at(r.Lane.To),
			QueueSeconds: r.Lane.Took[timeline.Queue].Seconds(), WaitSeconds: r.Lane.Took[timeline.Wait].Seconds(), RunSeconds: r.Lane.Took[timeline.Run].Seconds(),
			Spans: []spanJSON{},
		}
		for _, s := range c.bars[i] {
			row.Spans = append(row.Spans, spanJSON{s.Kind, at(s.From), at(s.To), s.Node, s.Attempt, s.Failed, s.Why.Word})
		}
		d.Rows = append(d.Rows, row)
	}
	return d
}
