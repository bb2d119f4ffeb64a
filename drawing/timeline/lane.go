package timeline

import (
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// Scale divides a time range into cells.
type Scale struct {
	From, To time.Time
	Cells    int
}

// Cell returns the cell that contains a time. Times outside are clamped.
func (s Scale) Cell(at time.Time) int {
	whole := s.To.Sub(s.From)
	if whole <= 0 {
		return 0
	}
	n := int(float64(at.Sub(s.From)) / float64(whole) * float64(s.Cells))
	return min(max(n, 0), s.Cells-1)
}

// Layer is a category of spans in a lane.
type Layer int

// Layers of a lane.
const (
	Runs   Layer = iota // running or successful attempts
	Fails               // failed attempts
	Waits               // attempts that wait on their nodes
	Queues              // tasks without a node
	layers
)

// Lane aggregates any number of bars into one line of a chart. Adding a bar takes constant time, so
// that one lane can show a hundred thousand instances.
type Lane struct {
	scale Scale
	// changes holds, for each layer and cell, the change in the number of spans that cover the
	// cell. A running sum gives the number.
	changes [layers][]int
	// ends counts the bars that ended in each cell: successful ones first, then failed ones.
	ends [2][]int
	Bars int
	// Took is the total duration of all spans by kind. From is the start of the first span and To
	// the end of the last one.
	Took     map[string]time.Duration
	From, To time.Time
}

// NewLane returns an empty lane.
func NewLane(scale Scale) *Lane {
	return &Lane{scale: scale, Took: map[string]time.Duration{}}
}

// Scale returns the scale of the lane.
func (l *Lane) Scale() Scale { return l.scale }

// Add adds a bar to the lane.
func (l *Lane) Add(b Bar) {
	l.Bars++
	for _, s := range b.Spans {
		l.Took[s.Kind] += s.To.Sub(s.From)
		if l.From.IsZero() || s.From.Before(l.From) {
			l.From = s.From
		}
		if s.To.After(l.To) {
			l.To = s.To
		}
		layer := layerOf(s)
		if l.changes[layer] == nil {
			l.changes[layer] = make([]int, l.scale.Cells+1)
		}
		first, last := l.scale.Cell(s.From), l.scale.Cell(s.To)
		// The last cell belongs to the next span, which starts where this one ends.
		if last > first && s.Kind != Run {
			last--
		}
		l.changes[layer][first]++
		l.changes[layer][last+1]--
	}
	l.countEnd(b)
}

// countEnd counts a terminal bar in the cell of its end.
func (l *Lane) countEnd(b Bar) {
	if len(b.Spans) == 0 || b.Away || !v1.IsTaskTerminal(b.State) {
		return
	}
	way := 0
	if v1.IsTaskFailure(b.State) {
		way = 1
	}
	if l.ends[way] == nil {
		l.ends[way] = make([]int, l.scale.Cells)
	}
	l.ends[way][l.scale.Cell(b.Spans[len(b.Spans)-1].To)]++
}

func layerOf(s Span) Layer {
	switch {
	case s.Kind == Run && s.Failed:
		return Fails
	case s.Kind == Run:
		return Runs
	case s.Kind == Wait:
		return Waits
	}
	return Queues
}

// Covers returns the number of spans of a layer that cover each cell, or nil if the layer is empty.
func (l *Lane) Covers(layer Layer) []int {
	if l.changes[layer] == nil {
		return nil
	}
	return sums(l.changes[layer][:l.scale.Cells])
}

// Ended returns the number of bars that had ended by the end of each cell, either successfully or
// as failures. It returns nil if there are none.
func (l *Lane) Ended(failed bool) []int {
	way := 0
	if failed {
		way = 1
	}
	if l.ends[way] == nil {
		return nil
	}
	return sums(l.ends[way])
}

// sums returns the running sums of numbers.
func sums(numbers []int) []int {
	all, sum := make([]int, len(numbers)), 0
	for i, n := range numbers {
		sum += n
		all[i] = sum
	}
	return all
}
