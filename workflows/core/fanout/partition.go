package fanout

import (
	"cmp"
	"maps"
	"slices"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/phrase"
)

// A partition reports to its run and carries out the run's orders.

// reportEvery is the shortest time between two reports of a partition. The first failure and the end are reported at once.
const reportEvery = time.Second

// runGone is the reason with which a child workflow is cancelled when its run has ended without it.
const runGone = "cancelled: the run that started it has ended"

// report is what a partition has reported to its run.
type report struct {
	at       time.Time // of the newest report
	counts   map[string]int32
	leftOn   []string
	failed   bool // a failure has been reported
	wanted   bool // the run has asked for a report
	timed    bool // a ReportLater is in effect
	revision int64
}

// Facts is what a report tells of a partition, besides the records of the core.
type Facts struct {
	Counts           map[string]int32 // of its instances in each state, as people see them
	DurationEstimate *historyv1.DurationEstimate
	Nodes            []string // that it has used
	LeftOn           []string // see PartitionReport.left_on
}

// Report sends the run the state of this partition if it has changed, once its instances are known.
func (s *State) Report(now time.Time, f Facts, draining bool) []Effect {
	if _, count := s.core.Instances(0); count == 0 {
		return nil
	}
	r := &s.report
	failed := r.failed || s.failedInstance() >= 0
	switch wait := reportEvery - now.Sub(r.at); {
	//workflowcheck:ignore (whether two maps are the same does not depend on the order)
	case !r.wanted && !s.hasUnsent() && maps.Equal(r.counts, f.Counts) && slices.Equal(r.leftOn, f.LeftOn):
	case r.wanted || failed && !r.failed || wait <= 0 || draining && s.hasUnsent():
		r.failed = failed
		p := s.newReport(now, f)
		updates, bytes := s.takeUnsent()
		p.ContextUpdates = updates
		s.do(SendReport{Report: p, Bytes: bytes})
	case !r.timed:
		r.timed = true
		s.do(ReportLater{Delay: wait})
	}
	return s.take()
}

// ReportDue ends the wait before the next report.
func (s *State) ReportDue() { s.report.timed = false }

// LastReport returns the report of the end of this partition, without its outputs.
func (s *State) LastReport(now time.Time, f Facts) *historyv1.PartitionReport {
	p, rec := s.newReport(now, f), s.core.Task(0)
	p.Over, p.State, p.ExitCode = true, rec.State, rec.ExitCode
	return p
}

// newReport returns the state of this partition.
func (s *State) newReport(now time.Time, f Facts) *historyv1.PartitionReport {
	r, part := &s.report, s.Input.GetPartition()
	r.at, r.wanted, r.counts, r.leftOn = now, false, f.Counts, f.LeftOn
	// Revisions also increase from one execution to the next.
	r.revision = max(r.revision+1, now.UnixMicro())
	p := &historyv1.PartitionReport{
		Task: part.GetTask(), From: part.GetFrom(), Generation: part.GetGeneration(), Chain: part.GetChain(), Revision: r.revision, Counts: r.counts,
		DurationEstimate: f.DurationEstimate, Nodes: f.Nodes, LeftOn: f.LeftOn,
	}
	if i := s.failedInstance(); i >= 0 {
		p.Failure = phrase.Because(s.core.Name(i), s.core.Task(i).Error)
		p.FinalFailures = int32(s.core.FinalFailures(0))
	}
	return p
}

// failedInstance returns the first failed instance, or -1 if none has failed.
func (s *State) failedInstance() int {
	first, count := s.core.Instances(0)
	//workflowcheck:ignore (whether there is one does not depend on the order)
	for state := range s.core.InstanceCounts(0) {
		if v1.IsTaskFailure(state) {
			for i := first; i < first+count; i++ {
				if v1.IsTaskFailure(s.core.Task(i).State) {
					return i
				}
			}
		}
	}
	return -1
}

// Ordered carries out an order of the run to this partition, which then reports. A run has no orders.
func (s *State) Ordered(o *historyv1.PartitionOrder, isPaused bool) []Effect {
	if s.Input.GetPartition() == nil {
		return nil
	}
	s.report.wanted = true
	switch {
	case o.GetKilled() != "":
		return []Effect{Raise{dag.Kill{Task: 0, Reason: o.GetKilled()}}}
	case o.GetCancel():
		return []Effect{Cancel{Reason: o.GetCancelReason()}}
	case o.GetPaused() && !isPaused:
		s.do(Pause{})
	case !o.GetPaused() && isPaused:
		s.do(Resume{})
	}
	// An earlier order of this round may not have reached the core yet, so every order is passed on.
	if o.GetHalt() {
		s.do(Raise{dag.HaltGroup{Task: 0, Reason: cmp.Or(o.GetHaltReason(), v1.ReasonHalt)}})
	} else {
		s.do(Raise{dag.ResumeGroup{Task: 0}})
	}
	return s.take()
}

// RunEnded ends this workflow, whose run has ended without it. Context updates that the run has not answered are refused.
func (s *State) RunEnded() []Effect {
	s.do(Cancel{Reason: runGone})
	var verdicts []*historyv1.ContextVerdict
	for _, a := range s.asks {
		verdicts = append(verdicts, &historyv1.ContextVerdict{Number: a.GetNumber(), Refusal: "the run has ended and takes no context updates"})
	}
	s.settle(verdicts)
	return s.take()
}
