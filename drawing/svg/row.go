package svg

import (
	"time"

	"switchyard/drawing/graph"
	"switchyard/drawing/timeline"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// MaxInstanceRows is the maximum number of instances that are drawn as individual rows. A task with
// more has a strip of counts instead.
const MaxInstanceRows = 20

// StripCells is the number of cells in the strip of a large fan-out.
const StripCells = 120

// Row is a line of a timeline: a task or an instance.
type Row struct {
	Name       string // "each" or "each[3]"
	IsInstance bool
	Finally    bool // a task of finally
	State      string
	Tone       string // state whose colour the row has
	Note       string // text beside the lane; may be empty
	Bar        timeline.Bar
	// Strip holds the Count instances of a large fan-out up to Until, or is nil otherwise.
	Strip *timeline.Lane
	Count int
	Until time.Time
}

// ID returns the id of the row's element.
func (r Row) ID() string { return "t-" + r.Name }

// Rows returns the rows of all tasks of a run in graph order, including tasks that have not
// started. strips holds a lane of StripCells cells for each task with more than MaxInstanceRows
// instances. Open spans end at now; an ended run has none.
func Rows(run *v1.Run, nodes []graph.Node, order []int, strips map[string]*timeline.Lane, now time.Time) []Row {
	rows := make([]Row, 0, len(order))
	ended := v1.IsRunTerminal(run.GetState())
	barOf := func(name string, t *v1.Task, ready time.Time) timeline.Bar {
		b := timeline.BarOf(name, t, ready, now)
		for k := range b.Spans {
			b.Spans[k].Open = b.Spans[k].Open && !ended
		}
		return b
	}
	for _, i := range order {
		name := nodes[i].Name
		t := run.GetTasks()[name]
		ready := timeline.ReadyAt(run, t)
		row := Row{Name: name, Finally: nodes[i].Finally, State: t.GetState(), Tone: words.Tone(t)}
		if !words.IsFannedOut(t) {
			row.Bar = barOf(name, t, ready)
			row.Note = took(row.Bar)
			rows = append(rows, row)
			continue
		}
		row.Note = words.Tally(t)
		if t.GetCount() > MaxInstanceRows {
			row.Strip, row.Count, row.Until = strips[name], int(t.GetCount()), now
			rows = append(rows, row)
			continue
		}
		rows = append(rows, row)
		for _, instance := range t.GetInstances() {
			one := v1.InstanceTask(t, instance)
			bar := barOf(names.InstanceName(name, int(instance.GetIndex())), one, ready)
			rows = append(rows, Row{Name: bar.Task, IsInstance: true, State: one.GetState(), Tone: words.Tone(one), Bar: bar, Note: took(bar)})
		}
	}
	return rows
}

// took returns how long an ended bar ran, or "" if the bar is empty or open.
func took(b timeline.Bar) string {
	if len(b.Spans) == 0 || b.Spans[len(b.Spans)-1].Open {
		return ""
	}
	return words.Duration(b.Took(timeline.Run))
}
