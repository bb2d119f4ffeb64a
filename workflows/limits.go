package workflows

import "cmp"

// Limits keep a run clear of those of Temporal: 51,200 events or 50 MB of
// history, 2,000 pending activities and 4 MB for the commands of one workflow
// task. A field that is zero has its default.
type Limits struct {
	// InFlight is the most attempts at once; 1,000.
	InFlight int
	// ScheduleBytes is the most that one workflow task schedules, in bytes of
	// requests; 1 MiB.
	ScheduleBytes int
	// HistoryEvents and HistoryBytes are the size of the history after which the
	// run goes on in a fresh one; 35,000 and 24 MiB.
	HistoryEvents, HistoryBytes int
	// UnstoredEvents is the most events of tasks that are kept in memory before they
	// are stored; 8,000, which take about 1 MB.
	UnstoredEvents int
}

func (l Limits) withDefaults() Limits {
	return Limits{
		InFlight:       cmp.Or(l.InFlight, 1000),
		ScheduleBytes:  cmp.Or(l.ScheduleBytes, 1<<20),
		HistoryEvents:  cmp.Or(l.HistoryEvents, 35_000),
		HistoryBytes:   cmp.Or(l.HistoryBytes, 24<<20),
		UnstoredEvents: cmp.Or(l.UnstoredEvents, 8000),
	}
}
