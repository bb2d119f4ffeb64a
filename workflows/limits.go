package workflows

import (
	"cmp"
	"time"
)

// Limits keep a run clear of those of Temporal: 51,200 events or 50 MB of
// history, 2,000 pending activities and 4 MB for the commands of one workflow
// task. A field that is zero has its default.
type Limits struct {
	// InFlight is the most attempts at once; 1,000.
	InFlight int
	// ScheduleBytes is the most that one workflow task schedules, in bytes of
	// requests; 1 MiB.
	ScheduleBytes int
	// Children is the most child workflows that are open at once; 500. Temporal wedges a run that has 2,000.
	Children int
	// HistoryEvents and HistoryBytes are the size of the history after which the
	// run goes on in a fresh one; 7,000 and 24 MiB. Until it does, each activity in flight may take three
	// events more, so that the history stays below 10,000.
	HistoryEvents, HistoryBytes int
	// HandoverWait is for how long what runs then may end by itself; 1 s.
	HandoverWait time.Duration
	// HandoverLease is how long an attempt may run with nobody who waits for it; a minute, in which another
	// control process has taken over if it must.
	HandoverLease time.Duration
	// UnstoredEvents is the most events of tasks that are kept in memory before they
	// are stored; 8,000, which take about 1 MB.
	UnstoredEvents int
	// Instances is the most instances of a task that the run carries through itself; FanOut children do for
	// more; 500.
	Instances int
	// PartInstances is how many instances a FanOut child carries through, and ten times as many when they go in
	// batches; 1,000.
	PartInstances int
}

func (l Limits) withDefaults() Limits {
	return Limits{
		InFlight:       cmp.Or(l.InFlight, 1000),
		ScheduleBytes:  cmp.Or(l.ScheduleBytes, 1<<20),
		Children:       cmp.Or(l.Children, 500),
		HistoryEvents:  cmp.Or(l.HistoryEvents, 7000),
		HandoverWait:   cmp.Or(l.HandoverWait, time.Second),
		HandoverLease:  cmp.Or(l.HandoverLease, time.Minute),
		HistoryBytes:   cmp.Or(l.HistoryBytes, 24<<20),
		UnstoredEvents: cmp.Or(l.UnstoredEvents, 8000),
		Instances:      cmp.Or(l.Instances, 500),
		PartInstances:  cmp.Or(l.PartInstances, 1000),
	}
}
