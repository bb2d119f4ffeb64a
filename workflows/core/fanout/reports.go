package fanout

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/flight"
)

// Reported applies the report of a child, which it changes.
func (s *State) Reported(p *historyv1.PartitionReport) []Effect {
	i, ok := s.core.Index(p.GetTask())
	m := s.of(i)
	if !ok || m == nil {
		return nil
	}
	was := m.partitionFrom(int(p.GetFrom()))
	if was == nil || p.GetChain() != was.GetChain() {
		return nil // its child was started by an execution that a reset has terminated
	}
	s.answerUpdates(p)
	for _, node := range p.GetNodes() {
		s.do(ShowNode{Node: node})
	}
	p.ContextUpdates, p.Nodes = nil, nil // each report is merged once, whatever order the reports come in
	if p.GetGeneration() != was.GetGeneration() || was.GetOver() || p.GetRevision() <= was.GetRevision() {
		return s.take()
	}
	p.Slot, p.First = was.GetSlot(), was.GetFirst()
	m.partitions[slices.Index(m.partitions, was)] = p
	if c := m.children[int(p.GetFrom())]; c != nil && p.GetOver() {
		s.do(AwaitClose{Child: c.number})
	}
	s.reported(m)
	return s.take()
}

// endLost ends a partition whose child has ended without a final report.
func (s *State) endLost(m *fanOut, from int, why string) {
	if p := m.partitionFrom(from); p != nil && !p.GetOver() {
		p.Failure = cmp.Or(p.GetFailure(), fmt.Sprintf("instances from %d on: %s", from, why))
		s.end(m, p, v1.TaskFailed, v1.TaskLost)
	}
}

// endUnopened ends a partition that was cancelled or killed before its child started.
func (s *State) endUnopened(m *fanOut, from int) {
	if p := m.partitionFrom(from); p != nil && !p.GetOver() {
		state := v1.TaskCancelled
		if s.core.KillReason(m.task) != "" {
			state = v1.TaskKilled
		}
		s.end(m, p, state, state)
	}
}

// end ends a partition in one state and its open instances in another.
func (s *State) end(m *fanOut, p *historyv1.PartitionReport, state, instances string) {
	p.Over, p.State, p.ExitCode = true, state, -1
	for _, open := range v1.OpenTaskStates() {
		if n := p.Counts[open]; n > 0 {
			p.Counts[instances] += n
			delete(p.Counts, open)
		}
	}
	s.reported(m)
}

// reported counts the instances in the partitions' reports, sends orders if too many have failed, and ends the task with its last
// partition.
func (s *State) reported(m *fanOut) {
	counts, known := map[string]int32{}, int32(0)
	for _, p := range m.partitions {
		//workflowcheck:ignore (sums do not depend on the order)
		for state, n := range p.GetCounts() {
			counts[state] += n
			known += n
		}
	}
	if rest := int32(m.total) - known; rest > 0 {
		counts[v1.TaskPending] += rest
	}
	failed, isOrdered := m.countedFailures() > s.maxFailures(m), false
	switch {
	case failed && !m.halted:
		m.halt(v1.ReasonMaxFailures)
		isOrdered = true
	case !failed && m.halted && m.haltReason == v1.ReasonMaxFailures && !m.partial: // some were requeued
		m.halted = false
		isOrdered = true
	}
	over := !m.hasOpenPartition() && len(m.requeued) == 0 && !slices.ContainsFunc(m.partitions, m.canReopen) &&
		(known >= int32(m.total) || m.halted || m.stopped)
	if n := counts[v1.TaskPending]; over && n > 0 { // from partitions that were never opened
		delete(counts, v1.TaskPending)
		counts[v1.TaskSkipped] += n
	}
	s.count(m, counts)
	if isOrdered {
		s.order(m)
	}
	s.do(Wake{})
	if over {
		s.do(Raise{m.ended(s.core.Task(m.task).Claim, s.core.Definition(m.task), counts, m.countedFailures())})
	}
}

// count records the number of instances in each state, and what is left after a cancellation.
func (s *State) count(m *fanOut, counts map[string]int32) {
	rec := s.records.At(m.task)
	rec.Counts, rec.LeftOn = counts, flight.LeftOnIn(m.partitions)
	s.do(Show{Task: m.task})
}

// answerUpdates merges the context updates of a partition and reports the verdicts to it.
func (s *State) answerUpdates(p *historyv1.PartitionReport) {
	if len(p.GetContextUpdates()) == 0 {
		return
	}
	var updates []*structpb.Struct
	for _, u := range p.GetContextUpdates() {
		updates = append(updates, u.GetUpdate())
	}
	answer, bytes := &historyv1.ContextAnswer{}, 0
	for k, refusal := range s.merge(updates...) {
		answer.Verdicts = append(answer.Verdicts, &historyv1.ContextVerdict{Number: p.GetContextUpdates()[k].GetNumber(), Refusal: refusal})
		bytes += updateCharge + len(refusal)
	}
	s.answers++
	s.do(SendAnswer{ID: s.idOf(p), Answer: answer, Bytes: bytes}, Wake{})
}

// AnswerSent notes that an answer to context updates has been sent, or that its partition has ended.
func (s *State) AnswerSent() { s.answers-- }

// OwesAnswers reports whether answers to context updates of partitions are in flight.
func (s *State) OwesAnswers() bool { return s.answers > 0 }
