package cli

import (
	"context"
	"maps"
	"slices"
	"time"

	"switchyard/cli/client"
	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// maxInstanceRows is how many instances of a task have a row each; of more, each
// node has one.
const maxInstanceRows = 20

// timeline is the life of a run.
type timeline struct {
	status *tui.Status
	run    *v1.Run
	scale  tui.Scale
	rows   []tui.Row
	bars   [][]tui.Span // of the rows; nil for one of many instances
}

// readTimeline reads the life of a run. It holds the tasks, and of a large fan-out
// only sums.
func readTimeline(ctx context.Context, a *client.Client, id string, cells int, now time.Time) (*timeline, error) {
	run, err := a.RunWithoutOutput(ctx, id)
	if err != nil {
		return nil, err
	}
	if run.GetCompletedAt() != nil {
		now = run.GetCompletedAt().AsTime()
	}
	t := &timeline{status: tui.StatusOf(run), run: run, scale: tui.Scale{From: run.GetCreatedAt().AsTime(), To: now, Cells: cells}}
	for _, name := range slices.Sorted(maps.Keys(run.GetTasks())) {
		task := run.GetTasks()[name]
		ready := tui.ReadyAt(run, task)
		if !tui.IsFannedOut(task) {
			t.single(tui.BarOf(name, task, ready, now))
			continue
		}
		add := func(bar tui.Bar) { t.single(bar) }
		var byNode map[string]*tui.Lane
		if task.GetCount() > maxInstanceRows {
			byNode = map[string]*tui.Lane{}
			add = func(bar tui.Bar) {
				if len(bar.Spans) == 0 {
					return
				}
				if byNode[bar.Node] == nil {
					byNode[bar.Node] = tui.NewLane(t.scale)
				}
				byNode[bar.Node].Add(bar)
			}
		}
		if task.GetCount() > 0 {
			err := a.InstancePages(ctx, run.GetId(), name, func(page []*v1.Instance) error {
				for _, i := range page {
					add(tui.BarOf(names.InstanceName(name, int(i.GetIndex())), tui.InstanceTask(task, i), ready, now))
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
		for _, node := range slices.Sorted(maps.Keys(byNode)) {
			t.rows, t.bars = append(t.rows, tui.Row{Name: name, Node: node, Lane: byNode[node]}), append(t.bars, nil)
		}
	}
	return t, nil
}

// single adds a row for one bar; what has not been queued yet has none.
func (t *timeline) single(bar tui.Bar) {
	if len(bar.Spans) == 0 {
		return
	}
	lane := tui.NewLane(t.scale)
	lane.Add(bar)
	t.rows = append(t.rows, tui.Row{Name: bar.Task, Node: bar.Node, State: bar.State, Lane: lane})
	t.bars = append(t.bars, bar.Spans)
}

// timelineJSON is a timeline in the form of -o json.
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
}

func (t *timeline) document() timelineJSON {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	d := timelineJSON{ID: t.run.GetId(), From: at(t.scale.From), To: at(t.scale.To), Rows: []rowJSON{}}
	for i, r := range t.rows {
		row := rowJSON{
			Task: r.Name, Node: r.Node, State: r.State, Instances: r.Lane.Bars, From: at(r.Lane.From), To: at(r.Lane.To),
			QueueSeconds: r.Lane.Took[tui.Queue].Seconds(), WaitSeconds: r.Lane.Took[tui.Wait].Seconds(), RunSeconds: r.Lane.Took[tui.Run].Seconds(),
			Spans: []spanJSON{},
		}
		for _, s := range t.bars[i] {
			row.Spans = append(row.Spans, spanJSON{s.Kind, at(s.From), at(s.To), s.Node, s.Attempt, s.Failed})
		}
		d.Rows = append(d.Rows, row)
	}
	return d
}
