package timeline

import (
	"time"

	"switchyard/drawing/words"
)

// Axis is the time axis of a chart.
type Axis struct {
	From, To time.Time
	Ticks    []Tick
}

// Tick is a mark on an axis.
type Tick struct {
	At    time.Time
	Label string // time since the start of the axis, such as "10m"
}

// maxTicks bounds the ticks of an axis, not counting the one at its start.
const maxTicks = 8

// steps are the distances between ticks. Longer axes use multiples of the last one.
var steps = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// NewAxis returns an axis between two times. If the run is open, the axis ends at its next tick, so
// that it stays the same for a while.
func NewAxis(from, to time.Time, open bool) Axis {
	whole := max(to.Sub(from), time.Millisecond)
	if open {
		whole = max(whole, 5*time.Second)
	}
	step := stepOf(whole)
	if open {
		whole = (whole/step + 1) * step
		step = stepOf(whole)
	}
	a := Axis{From: from, To: from.Add(whole)}
	for at := time.Duration(0); at <= whole; at += step {
		a.Ticks = append(a.Ticks, Tick{from.Add(at), tickLabel(at)})
	}
	return a
}

// stepOf returns the smallest step that keeps the ticks within maxTicks.
func stepOf(whole time.Duration) time.Duration {
	for _, step := range steps {
		if whole/step <= maxTicks {
			return step
		}
	}
	last := steps[len(steps)-1]
	return last * (1 + whole/last/maxTicks)
}

// tickLabel formats a distance from the start, without zero parts.
func tickLabel(at time.Duration) string {
	switch {
	case at == 0:
		return "0"
	case at%time.Hour == 0:
		return at.String()[:len(at.String())-len("0m0s")]
	case at%time.Minute == 0 && at < time.Hour:
		return at.String()[:len(at.String())-len("0s")]
	}
	return words.Duration(at)
}

// Part returns the position of a time on the axis, from 0 to 1. Times outside are clamped.
func (a Axis) Part(at time.Time) float64 {
	whole := a.To.Sub(a.From)
	if whole <= 0 {
		return 0
	}
	return min(max(float64(at.Sub(a.From))/float64(whole), 0), 1)
}

// Scale returns the axis divided into cells.
func (a Axis) Scale(cells int) Scale { return Scale{From: a.From, To: a.To, Cells: cells} }

// floors is the number of distinct times that Floor returns for an axis.
const floors = 60

// Floor rounds a time down to a step of the axis, so that a drawing up to that time stays the same
// for a while.
func (a Axis) Floor(at time.Time) time.Time {
	part := max(a.To.Sub(a.From)/floors, time.Millisecond)
	return a.From.Add(at.Sub(a.From) / part * part)
}
