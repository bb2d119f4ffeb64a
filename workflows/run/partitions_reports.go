package run

import (
	"cmp"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// receiveReports applies the reports of the children.
func (ps *partitions) receiveReports() {
	reports := workflow.GetSignalChannel(ps.root, names.PartitionReportSignal)
	for reports.Len() > 0 {
		var p v1.PartitionReport
		if !ps.receiveSignal(reports, &p) {
			continue
		}
		i, ok := ps.graph.Index(p.GetTask())
		m := ps.of(i)
		if !ok || m == nil {
			continue
		}
		k := slices.IndexFunc(m.partitions, func(was *v1.PartitionReport) bool { return was.GetFrom() == p.GetFrom() })
		if k < 0 || p.GetChain() != m.partitions[k].GetChain() {
			continue // its child was started by an execution that a reset has terminated
		}
		ps.answerUpdates(&p)
		for _, node := range p.GetNodes() {
			ps.view.addNode(node)
		}
		p.ContextUpdates, p.Nodes = nil, nil // each report is merged once, whatever order the reports come in
		if p.GetGeneration() != m.partitions[k].GetGeneration() || m.partitions[k].GetOver() || p.GetRevision() <= m.partitions[k].GetRevision() {
			continue
		}
		p.Slot, p.First = m.partitions[k].GetSlot(), m.partitions[k].GetFirst()
		m.partitions[k] = &p
		if w := m.children[int(p.GetFrom())]; w != nil && p.GetOver() {
			w.closing = true
		}
		ps.reported(m)
	}
}

// endLost ends a partition whose child has ended without a final report.
func (ps *partitions) endLost(m *partitionedFanOut, from int, why string) {
	if p := m.partitionFrom(from); p != nil && !p.GetOver() {
		p.Failure = cmp.Or(p.GetFailure(), fmt.Sprintf("instances from %d on: %s", from, why))
		ps.end(m, p, v1.TaskFailed, v1.TaskLost)
	}
}

// endUnopened ends a partition that was cancelled or killed before its child started.
func (ps *partitions) endUnopened(m *partitionedFanOut, from int) {
	if p := m.partitionFrom(from); p != nil && !p.GetOver() {
		state := v1.TaskCancelled
		if ps.flight.KillReason(m.task) != "" {
			state = v1.TaskKilled
		}
		ps.end(m, p, state, state)
	}
}

// end ends a partition in one state and its open instances in another.
func (ps *partitions) end(m *partitionedFanOut, p *v1.PartitionReport, state, instances string) {
	p.Over, p.State, p.ExitCode = true, state, -1
	for _, open := range v1.OpenTaskStates() {
		if n := p.Counts[open]; n > 0 {
			p.Counts[instances] += n
			delete(p.Counts, open)
		}
	}
	ps.reported(m)
}

// reported updates the status from the partitions' reports and ends the task with its last partition.
func (ps *partitions) reported(m *partitionedFanOut) {
	def := ps.core.Definition(m.task)
	counts, known, over := map[string]int32{}, int32(0), true
	for _, p := range m.partitions {
		//workflowcheck:ignore (sums do not depend on the order)
		for state, n := range p.GetCounts() {
			counts[state] += n
			known += n
		}
		over = over && p.GetOver()
	}
	if rest := int32(m.total) - known; rest > 0 {
		counts[v1.TaskPending] += rest
	}
	ps.show(m, counts)
	switch failed := m.countedFailures() > def.GetMaxFailures(); {
	case failed && !m.halted:
		m.halt(v1.ReasonMaxFailures)
		ps.order(m)
	case !failed && m.halted && m.haltReason == v1.ReasonMaxFailures && !m.partial: // some were requeued
		m.halted = false
		ps.order(m)
	}
	ps.wake()
	over = over && len(m.requeued) == 0 && !slices.ContainsFunc(m.partitions, func(p *v1.PartitionReport) bool { return m.canReopen(p) })
	if over && (known >= int32(m.total) || m.halted || m.stopped) {
		if n := counts[v1.TaskPending]; n > 0 { // from partitions that were never opened
			delete(counts, v1.TaskPending)
			counts[v1.TaskSkipped] += n
		}
		ps.raise(m.ended(ps.core.Task(m.task).Claim, def, counts, m.countedFailures()))
	}
}

// show records and shows the number of instances in each state.
func (ps *partitions) show(m *partitionedFanOut, counts map[string]int32) {
	m.counts = counts
	ps.status.SetCounts(m.task, m.total, counts)
}

// answerUpdates merges the context updates of a partition and reports the verdicts to it.
func (ps *partitions) answerUpdates(p *v1.PartitionReport) {
	if len(p.GetContextUpdates()) == 0 {
		return
	}
	var updates []*structpb.Struct
	for _, u := range p.GetContextUpdates() {
		updates = append(updates, u.GetUpdate())
	}
	answer, written := &v1.ContextAnswer{}, 0
	for k, refusal := range ps.contexts.merge(updates...) {
		answer.Verdicts = append(answer.Verdicts, &v1.ContextVerdict{Number: p.GetContextUpdates()[k].GetNumber(), Refusal: refusal})
		written += updateCharge + len(refusal)
	}
	ps.answers++
	ps.outbox.watch(ps.outbox.signal(ps.idOf(p), names.ContextSignal, answer, written), func(f workflow.Future) {
		ps.answers--
		if err := f.Get(ps.ctx, nil); err != nil {
			workflow.GetLogger(ps.ctx).Debug("could not send a partition the answer to its context updates", "error", err)
		}
	})
	ps.wake()
}

// owesAnswers reports whether answers to context updates of partitions are in flight.
func (ps *partitions) owesAnswers() bool { return ps.answers > 0 }
