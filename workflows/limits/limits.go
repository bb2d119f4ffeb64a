package limits

import (
	"cmp"
	"time"
)

// Run holds the limits that keep a run within those of Temporal: 51,200 events or 50 MB of history, 2,000 updates and 10,000
// signals an execution, 10 updates in flight, 2,000 pending activities, and 4 MB for the commands of one workflow task. A zero
// field means its default.
type Run struct {
	// InFlight is the most attempts at once; default 1,000.
	InFlight int
	// ScheduleBytes is the most that one workflow task schedules, in bytes of requests; default 1 MiB.
	ScheduleBytes int
	// Children is the most child workflows open at once; default 500. Temporal blocks a run that has 2,000.
	Children int
	// HistoryEvents and HistoryBytes are the soft limit of the history. Past it, the run continues as new when nothing is in
	// flight; default 10,000 and 12 MiB.
	HistoryEvents, HistoryBytes int
	// HardHistoryEvents and HardHistoryBytes are the hard limit of the history. Past it, the run admits nothing until it has
	// detached what is in flight and has continued as new; default 30,000 and 24 MiB.
	HardHistoryEvents, HardHistoryBytes int
	// LastHistoryEvents and LastHistoryBytes are how far the hard limit moves while some attempts cannot be detached; default
	// 45,000 and 32 MiB. Past that, each attempt in flight adds up to five more events and its result, and all results of a run
	// take 16 MiB.
	LastHistoryEvents, LastHistoryBytes int
	// Updates and Signals, with Hard and Last as for the history, limit what an execution receives. Defaults: 1,000, 1,500 and 1,900
	// updates; 5,000, 8,000 and 9,500 signals. Past the last limit the run accepts no update until it has continued as new.
	Updates, HardUpdates, LastUpdates int
	Signals, HardSignals, LastSignals int
	// NodeRequests is the most updates that wait for the answer of a node at once; default 6. The others of the 10 remain for
	// updates that the run answers itself.
	NodeRequests int
	// DetachWait is how long attempts may end by themselves before they are detached; default 1 s.
	DetachWait time.Duration
	// DetachedLease is how long a detached attempt may run unattended; default 1 min, in which another control process can take
	// over.
	DetachedLease time.Duration
	// UnstoredEvents is the most events of tasks kept in memory before they are stored; default 8,000, which take about 2 MB.
	UnstoredEvents int
	// Instances is the most instances of a task that the run handles itself; FanOut children handle larger fan-outs; default
	// 500.
	Instances int
	// PartitionInstances is how many instances a FanOut child handles; default 1,000. In batches it handles ten times as many.
	PartitionInstances int
}

// WithDefaults returns the limits with zero fields set to their defaults.
func (l Run) WithDefaults() Run {
	return Run{
		InFlight:           cmp.Or(l.InFlight, 1000),
		ScheduleBytes:      cmp.Or(l.ScheduleBytes, 1<<20),
		Children:           cmp.Or(l.Children, 500),
		HistoryEvents:      cmp.Or(l.HistoryEvents, 10_000),
		HistoryBytes:       cmp.Or(l.HistoryBytes, 12<<20),
		HardHistoryEvents:  cmp.Or(l.HardHistoryEvents, 30_000),
		HardHistoryBytes:   cmp.Or(l.HardHistoryBytes, 24<<20),
		LastHistoryEvents:  cmp.Or(l.LastHistoryEvents, 45_000),
		LastHistoryBytes:   cmp.Or(l.LastHistoryBytes, 32<<20),
		Updates:            cmp.Or(l.Updates, 1000),
		HardUpdates:        cmp.Or(l.HardUpdates, 1500),
		LastUpdates:        cmp.Or(l.LastUpdates, 1900),
		Signals:            cmp.Or(l.Signals, 5000),
		HardSignals:        cmp.Or(l.HardSignals, 8000),
		LastSignals:        cmp.Or(l.LastSignals, 9500),
		NodeRequests:       cmp.Or(l.NodeRequests, 6),
		DetachWait:         cmp.Or(l.DetachWait, time.Second),
		DetachedLease:      cmp.Or(l.DetachedLease, time.Minute),
		UnstoredEvents:     cmp.Or(l.UnstoredEvents, 8000),
		Instances:          cmp.Or(l.Instances, 500),
		PartitionInstances: cmp.Or(l.PartitionInstances, 1000),
	}
}

// historySteps is the number of steps in which the hard limit moves to the last one.
const historySteps = 8

// HistorySize is the length of a history, with the updates and signals in it, or a limit for it.
type HistorySize struct{ Events, Bytes, Updates, Signals int }

// Soft returns the soft limit of the history.
func (l Run) Soft() HistorySize {
	return HistorySize{l.HistoryEvents, l.HistoryBytes, l.Updates, l.Signals}
}

// Hard returns the hard limit of the history.
func (l Run) Hard() HistorySize {
	return HistorySize{l.HardHistoryEvents, l.HardHistoryBytes, l.HardUpdates, l.HardSignals}
}

// Last returns the limit beyond which the hard limit does not move.
func (l Run) Last() HistorySize {
	return HistorySize{l.LastHistoryEvents, l.LastHistoryBytes, l.LastUpdates, l.LastSignals}
}

// Step returns how far the hard limit moves at a time.
func (l Run) Step() HistorySize {
	return l.Last().combine(l.Hard(), func(last, hard int) int { return (last - hard) / historySteps })
}

// Exceeds reports whether a history exceeds a limit.
func (s HistorySize) Exceeds(bound HistorySize) bool {
	return s.Events > bound.Events || s.Bytes > bound.Bytes || s.Updates > bound.Updates || s.Signals > bound.Signals
}

// Raised returns the limit raised to a step above a history, but not beyond last.
func (s HistorySize) Raised(history, step, last HistorySize) HistorySize {
	above := history.combine(step, func(a, b int) int { return a + b })
	return s.combine(above, func(a, b int) int { return max(a, b) }).combine(last, func(a, b int) int { return min(a, b) })
}

// combine returns the results of f for each pair of the same fields.
func (s HistorySize) combine(t HistorySize, f func(a, b int) int) HistorySize {
	return HistorySize{f(s.Events, t.Events), f(s.Bytes, t.Bytes), f(s.Updates, t.Updates), f(s.Signals, t.Signals)}
}
