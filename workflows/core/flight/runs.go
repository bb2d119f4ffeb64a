package flight

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/phrase"
	"switchyard/workflows/structs"
)

// Run is the run of a task of type run. It exists from the task's admission, before there is a workflow.
type Run struct {
	ID, First   string                 // of its workflow, and of the first execution of that; "" until it is started, and until it is open
	startedAt   *timestamppb.Timestamp // nil if it has not started
	isCancelled bool                   // by this run
}

// RunOf returns the run of a task, or nil if there is none.
func (s *State) RunOf(i int) *Run {
	if u := s.units[i]; u != nil {
		return u.Run
	}
	return nil
}

// startRun requests the run that a task starts. Expressions in a definition within the spec are left alone: they belong to the
// child.
func (s *State) startRun(u *Unit, rendered *structpb.Struct) {
	spec := structs.Clone(rendered)
	if inline := s.core.Definition(u.Lead).GetSpec().GetFields()["definition"]; inline != nil {
		spec.Fields["definition"] = inline
	}
	u.Run = &Run{}
	s.raise(dag.Placed{Task: u.Lead, Claim: u.Claim})
	s.do(StartRun{u, spec})
}

// RunStarted records the start of the run of a unit, which is not open yet.
func (s *State) RunStarted(u *Unit, id string, now time.Time) []Effect {
	u.Run.ID, u.Run.startedAt = id, timestamppb.New(now)
	s.records.At(u.Lead).ChildRun = id
	return []Effect{Show{Task: u.Lead}}
}

// RunOpened records that the run of a unit is open.
func (s *State) RunOpened(u *Unit, first string) []Effect {
	u.Run.First = first
	return []Effect{ShowStarted{u.Lead, u.Run.startedAt}, Raise{dag.Running{Task: u.Lead, Claim: u.Claim}}}
}

// RunRefused ends a task whose run cannot be started.
func (s *State) RunRefused(u *Unit, why string) []Effect {
	s.endRun(u, dag.Ended{State: v1.TaskFailed, Reason: v1.ReasonChildRun, Error: why, NoRetry: true}, nil)
	return s.take()
}

// RunOver ends a task when its run has ended. If the run completed, its result is read first. The end is nil if the run was
// cancelled before its start.
func (s *State) RunOver(u *Unit, end *historyv1.RunEnd) []Effect {
	switch {
	case end == nil:
		s.endRun(u, dag.Ended{State: v1.TaskCancelled, NoRetry: true}, nil)
	case end.GetStatus() == v1.RunEndCompleted:
		s.completed = append(s.completed, CompletedRun{u, end})
		s.do(Wake{})
	default:
		ended := runFailure(u.Run.ID, end)
		if ended.State == v1.TaskCancelled && !u.Run.isCancelled { // a person cancelled it and does not want a retry
			ended.State, ended.Reason, ended.NoRetry = v1.TaskFailed, v1.ReasonChildRun, true
		}
		s.endRun(u, ended, nil)
	}
	return s.take()
}

// CompletedRun is a run whose result is still to be read.
type CompletedRun struct {
	Unit *Unit
	End  *historyv1.RunEnd
}

// HasResults reports whether results of completed runs are still to be read.
func (s *State) HasResults() bool { return len(s.completed) > 0 }

// Results returns the first completed runs whose results are to be read now, at most the given number; none while results are being
// read. It is answered by RunRead or RunUnreadable for each, after ResultsRead.
func (s *State) Results(most int) []CompletedRun {
	if s.isReading || len(s.completed) == 0 {
		return nil
	}
	s.isReading = true
	return s.completed[:min(len(s.completed), most)]
}

// ResultsRead records that the results of runs have been read.
func (s *State) ResultsRead(n int) {
	s.isReading, s.completed = false, slices.Clone(s.completed[n:])
}

// RunRead ends a task with the result of its run. A retry would repeat the work of the run.
func (s *State) RunRead(u *Unit, answer *historyv1.ExecuteResponse) []Effect {
	ended := dag.Ended{State: answer.GetState(), Reason: answer.GetReason(), Error: answer.GetError()}
	ended.NoRetry = ended.State != v1.TaskCompleted
	s.endRun(u, ended, answer)
	return s.take()
}

// RunUnreadable ends a task whose run has done its work, which a retry would repeat.
func (s *State) RunUnreadable(u *Unit, cause string) []Effect {
	s.endRun(u, dag.Ended{
		State: v1.TaskFailed, Reason: v1.ReasonSystem, NoRetry: true,
		Error: "run " + u.Run.ID + " completed, but its result cannot be read: " + cause,
	}, nil)
	return s.take()
}

// endRun ends a task of type run. res is nil if there was no run, or if it did not complete.
func (s *State) endRun(u *Unit, ended dag.Ended, res *historyv1.ExecuteResponse) {
	ended.ExitCode = -1
	if u.Run.ID != "" {
		ended.ExitCode = 1
	}
	switch {
	case res != nil:
		ended.ExitCode = res.GetResult().GetExitCode()
	case u.Run.startedAt != nil:
		res = &historyv1.ExecuteResponse{StartedAt: u.Run.startedAt, Result: &v1.TaskResult{ExitCode: ended.ExitCode, Output: &structpb.Struct{}}}
	default:
		res = &historyv1.ExecuteResponse{}
	}
	u.Run = nil
	s.endElsewhere(u.Lead, res, ended)
}

// runFailure returns the end of a task whose run did not complete. A failure that the run would only repeat is one of the task, too,
// for the same reason.
func runFailure(id string, end *historyv1.RunEnd) dag.Ended {
	failed := func(reason, text string) dag.Ended {
		return dag.Ended{State: v1.TaskFailed, Reason: reason, Error: "run " + id + " " + text, NoRetry: end.GetFinalReason() != ""}
	}
	switch {
	case end.GetState() == v1.RunRejected: // by a person, or because too many runs of the workflow are open
		return failed(cmp.Or(end.GetFinalReason(), v1.ReasonConcurrency), "was rejected: "+end.GetError())
	case end.GetStatus() == v1.RunEndFailed:
		return failed(cmp.Or(end.GetFinalReason(), v1.ReasonChildRun), "failed: "+end.GetError())
	case end.GetStatus() == v1.RunEndCancelled:
		ended := failed(v1.ReasonCancelled, "was cancelled")
		ended.State, ended.NoRetry = v1.TaskCancelled, true
		return ended
	case end.GetStatus() == v1.RunEndTerminated:
		ended := failed(v1.ReasonChildRun, "was terminated")
		ended.NoRetry = true
		return ended
	default:
		return failed(v1.ReasonSystem, "could not be carried out: "+end.GetError())
	}
}

// stopRun cancels the run of a task.
func (s *State) stopRun(u *Unit) {
	u.Run.isCancelled = true
	s.do(CancelRun{Unit: u, Why: phrase.Because("with task "+s.core.Name(u.Lead)+" of run "+s.RunID, s.core.EndReason(u.Lead))})
}

// CancelRunsNow ends the runs of all tasks, with their `finally`.
func (s *State) CancelRunsNow(why string) []Effect {
	for _, u := range s.leads() {
		if u.Run != nil {
			u.Run.isCancelled = true
			s.do(CancelRun{Unit: u, Why: phrase.Because("with run "+s.RunID, why), Now: true})
		}
	}
	return s.take()
}

// restoreRun continues with the run that a task started in the previous execution.
func (s *State) restoreRun(i int, t *historyv1.TaskState) {
	u := s.track(&Unit{Lead: i, Members: []int{i}, Claim: s.claimOf(i), Phase: Elsewhere, lock: s.lockOf(i)})
	u.Run = &Run{ID: t.GetTask().GetChildRun(), First: t.GetChildFirst(), startedAt: t.GetTask().GetStartedAt()}
	s.do(ReattachRun{u})
}
