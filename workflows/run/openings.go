package run

import (
	"fmt"
	"maps"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// openings opens the partitions of large fan-outs in child workflows, as many at once as the limits allow. It owns the number
// of those that are queued or open.
type openings struct {
	*execution
	ancestry   ancestorReader
	children   openingChildren
	partitions openingPartitions

	count int
}

// The openings use these parts of other components.
type (
	openingChildren interface {
		isOpen(id string) bool
		want(w *childWorkflow)
		reattach(w *childWorkflow)
	}
	openingPartitions interface {
		idOf(p *v1.PartitionReport) string
		orderOne(m *partitionedFanOut, from int)
		reported(m *partitionedFanOut)
		endIfNoneOpen(m *partitionedFanOut)
		endLost(m *partitionedFanOut, from int, why string)
		endUnopened(m *partitionedFanOut, from int)
	}
)

// open opens as many partitions of a large fan-out as the limits allow.
func (op *openings) open(m *partitionedFanOut) {
	def := op.core.Definition(m.task)
	parts := (m.total + m.size - 1) / m.size
	limit := int(least(def.GetConcurrency(), op.in.GetDefinition().GetMaxParallel()))
	width := min(parts, partitionsAtOnce)
	if limit > 0 {
		width = min(width, limit)
	}
	op.reopen(m, width, limit)
	for len(m.partitions) < parts && (!m.halted || m.partial) && !m.stopped && !(op.draining && len(m.partitions) > 0) {
		slot := m.freeSlot(width)
		if slot < 0 || op.waitsForChildren(m) {
			return
		}
		from := len(m.partitions) * m.size
		to := m.partitionEnd(len(m.partitions))
		before := m.partitionBefore(from)
		if before.GetOver() && (before.GetCounts()[v1.TaskCompleted] == int32(to-from) || m.isKept(before, m.hasRequeued(from, to))) {
			m.partitions = append(m.partitions, before)
			continue
		}
		if m.halted && before == nil {
			break // nothing new starts
		}
		if before != nil && op.children.isOpen(op.partitions.idOf(before)) {
			return // the child has reported its end and has not closed yet
		}
		o := opening{
			from: from, to: to, concurrency: m.share(slot, limit, width), before: before,
			skipped: m.partial && before.GetOver(),
		}
		input, err := op.inputOf(m, o)
		if err != nil {
			op.wake()
			return
		}
		m.partitions = append(m.partitions, &v1.PartitionReport{
			Task: op.graph.Name(m.task), From: int32(from), Slot: int32(slot), Generation: op.in.GetGeneration(), Chain: op.chain,
			Counts: map[string]int32{v1.TaskPending: int32(to - from)}, Revision: before.GetRevision(),
		})
		m.dropRequeued(from, to)
		op.openPartition(m, o, input)
	}
	m.partial = m.partial && len(m.partitions) < parts && !m.halted
	if len(m.before) > 0 && len(m.partitions) == parts {
		op.partitions.endIfNoneOpen(m) // all of them may be kept
	}
}

// least returns the smaller of two limits; 0 means no limit.
func least(a, b int32) int32 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// opening describes how to open a partition.
type opening struct {
	from, to    int // instances
	concurrency int32
	before      *v1.PartitionReport // its report from when it was open before, or nil if it never was
	skipped     bool                // besides requeued instances, only skipped ones run again
}

// waitsForChildren reports whether a fan-out cannot open a child workflow now, and shows the wait in the status.
func (op *openings) waitsForChildren(m *partitionedFanOut) bool {
	waits, text := op.flight.FreeChildren() <= 0, ""
	if waits {
		text = fmt.Sprintf("waits: the run has reached the limit of %d open child workflows", op.limits.Children)
	}
	if waits || m.waits {
		op.status.SetWaitReason(m.task, text)
	}
	m.waits = waits
	return waits
}

// openPartition starts the child that runs a partition.
func (op *openings) openPartition(m *partitionedFanOut, o opening, input *v1.RunInput) {
	from := o.from
	w := &childWorkflow{request: &v1.ChildRequest{Id: op.partitions.idOf(m.partitionFrom(from)), Input: input}}
	w.start = func(prepared *v1.PreparedChild) (string, workflow.ChildWorkflowOptions) {
		if p := m.partitionFrom(from); p != nil { // it may have been prepared before a reset
			f, _ := names.ParseFanOutID(prepared.GetId())
			p.Chain = f.Chain
		}
		return names.FanOutWorkflow, workflow.ChildWorkflowOptions{
			WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			StaticSummary:         fmt.Sprintf("%s[%d] to [%d] of %s", op.graph.Name(m.task), from, o.to-1, op.id),
		}
	}
	w.refused = func(why string) {
		delete(m.children, from)
		op.countOpen(-1)
		op.partitions.endLost(m, from, why)
	}
	w.opened = func() {
		if p := m.partitionFrom(from); p != nil {
			p.First = w.first
		}
		if m.late[from] {
			delete(m.late, from)
			op.partitions.orderOne(m, from)
		}
	}
	op.follow(m, from, w)
	op.children.want(w)
}

// follow registers the child of a partition and ends the partition if the child ends without a final report.
func (op *openings) follow(m *partitionedFanOut, from int, w *childWorkflow) {
	m.children[from] = w
	op.countOpen(1)
	w.over = func(end *v1.RunEnd) {
		op.countOpen(-1)
		if m.children[from] == w { // it was not opened again since
			delete(m.children, from)
			if end == nil {
				op.partitions.endUnopened(m, from)
			} else {
				op.partitions.endLost(m, from, "its workflow has ended: "+endText(end))
			}
		}
	}
}

// countOpen adds n to the number of partitions whose children are queued or open.
func (op *openings) countOpen(n int) {
	op.count += n
	op.flight.SetChildren(op.count)
}

// reattach continues with the open partitions of the previous execution.
func (op *openings) reattach(m *partitionedFanOut) {
	if op.in.GetState() == nil {
		return // those of the previous generation have been ended
	}
	for _, p := range m.partitions {
		if !p.GetOver() {
			from := int(p.GetFrom())
			w := &childWorkflow{id: op.partitions.idOf(p), first: p.GetFirst()}
			op.follow(m, from, w)
			op.children.reattach(w)
		}
	}
}

// inputOf returns the input of a partition's child: the task without its dependencies and conditions. The only error is
// errInterrupted.
func (op *openings) inputOf(m *partitionedFanOut, o opening) (*v1.RunInput, error) {
	name, def := op.graph.Name(m.task), op.in.GetDefinition()
	refs := op.in.GetReferences()[name]
	task := proto.CloneOf(op.core.Definition(m.task))
	task.DependsOn, task.Condition, task.When, task.OnFailure, task.Deadline, task.ContinueOnError = nil, "", "", "", "", false
	part := &v1.Partition{
		Chain: op.chain,
		RunId: op.id, Generation: op.in.GetGeneration(), Task: name, From: int32(o.from), To: int32(o.to), Count: int32(m.total),
		Items: op.records.Of(m.task).Items, Concurrency: o.concurrency, MaxFailures: task.GetMaxFailures(),
		Views: map[string]*v1.ParentView{}, Paused: op.flight.IsPaused(), Claim: op.in.GetGeneration() * claimsOfGeneration,
	}
	part.DurationEstimate = m.durationEstimate()
	if m.halted {
		part.HaltReason = m.haltReason
	}
	var again *v1.Rerun
	if o.before != nil {
		part.Previous, again = op.partitions.idOf(o.before), &v1.Rerun{Failed: !o.skipped, Skipped: o.skipped && !m.halted}
	}
	var back []string
	for _, n := range m.requeuedIn(o.from, o.to) {
		back = append(back, names.InstanceName(name, int(n)))
	}
	part.Ends = op.ancestry.ancestorEnds(m.task)
	var err error
	if part.Parents, err = op.ancestry.parentOutputs(m.task); err != nil {
		return nil, err
	}
	if err := op.ancestry.addViews(part.Views, slices.Concat(refs.GetTemplates(), refs.GetCache())); err != nil {
		return nil, err
	}
	return &v1.RunInput{
		Definition: &v1.Definition{Name: def.GetName(), Context: op.context, Tasks: map[string]*v1.TaskDefinition{name: task}},
		Input:      op.in.GetInput(), References: map[string]*v1.ConditionReferences{name: refs},
		Options: op.in.GetOptions(), Generation: op.in.GetGeneration(), Partition: part, Rerun: again, Retry: back,
		ParentRun: op.in.GetParentRun(), ParentTask: op.in.GetParentTask(), Depth: op.in.GetDepth(),
		ParentFirst: op.first, ByRole: op.in.GetByRole(), SignedDecisions: op.in.GetSignedDecisions(), CacheScope: op.cacheScope(),
		Workflows: op.in.GetWorkflows(), HeldLocks: op.flight.HeldBy(nil),
	}, nil
}

// reopen reopens ended partitions of a running task that have requeued instances or skipped ones that may now start.
func (op *openings) reopen(m *partitionedFanOut, width, limit int) {
	if m.stopped || op.draining || m.partial {
		return
	}
	for k, was := range m.partitions {
		from, to := int(was.GetFrom()), m.partitionEnd(k)
		if !was.GetOver() || m.children[from] != nil || !m.hasRequeued(from, to) && !m.canReopen(was) {
			continue
		}
		slot := m.freeSlot(width)
		if slot < 0 || op.waitsForChildren(m) {
			return
		}
		o := opening{from: from, to: to, concurrency: m.share(slot, limit, width), before: was, skipped: true}
		input, err := op.inputOf(m, o)
		if err != nil {
			op.wake()
			return
		}
		p := &v1.PartitionReport{
			Task: was.GetTask(), From: was.GetFrom(), Slot: int32(slot), Generation: op.in.GetGeneration(), Chain: op.chain,
			Counts: maps.Clone(was.GetCounts()), Revision: was.GetRevision(), DurationEstimate: was.GetDurationEstimate(),
		}
		if n := int32(len(m.requeuedIn(from, to))); n > 0 {
			p.Counts[v1.TaskPending] += n
			if p.Counts[v1.TaskDeadLetter] -= n; p.Counts[v1.TaskDeadLetter] <= 0 {
				delete(p.Counts, v1.TaskDeadLetter)
			}
		}
		m.dropRequeued(from, to)
		m.partitions[k] = p
		op.openPartition(m, o, input)
		op.partitions.reported(m)
	}
}
