package run

import (
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// openAllPartitions opens as many partitions of the large fan-outs as the limits allow.
func (r *run) openAllPartitions() {
	for _, m := range r.partitioned {
		if r.core.Task(m.task).State == v1.TaskRunning {
			r.openPartitions(m)
		}
	}
}

func (r *run) openPartitions(m *partitionedFanOut) {
	def, size := r.core.Definition(m.task), r.partitionSize(m)
	parts := (m.total + size - 1) / size
	limit := int(least(def.GetConcurrency(), r.in.GetDefinition().GetMaxParallel()))
	width := min(parts, partitionsAtOnce)
	if limit > 0 {
		width = min(width, limit)
	}
	r.reopenPartitions(m, size, width, limit)
	for len(m.partitions) < parts && (!m.halted || m.partial) && !m.stopped && !(r.draining && len(m.partitions) > 0) {
		slot := m.freeSlot(width)
		if slot < 0 || r.waitsForChildren(m) {
			return
		}
		from := len(m.partitions) * size
		to := m.partitionEnd(len(m.partitions), size)
		before := m.partitionBefore(from)
		if before.GetOver() && (before.GetCounts()[v1.TaskCompleted] == int32(to-from) || m.keeps(before, m.hasRequeued(from, to))) {
			m.partitions = append(m.partitions, before)
			continue
		}
		if m.halted && before == nil {
			break // nothing new starts
		}
		if before != nil && r.children.open[r.partitionID(before)] != nil {
			return // the child has reported its end and has not closed yet
		}
		o := opening{
			from: from, to: to, concurrency: m.share(slot, limit, width), before: before,
			skipped: m.partial && before.GetOver(),
		}
		input, err := r.partitionInput(m, o)
		if err != nil {
			r.wake()
			return
		}
		m.partitions = append(m.partitions, &v1.PartitionReport{
			Task: r.graph.Name(m.task), From: int32(from), Slot: int32(slot), Generation: r.in.GetGeneration(), Chain: r.chain,
			Counts: map[string]int32{v1.TaskPending: int32(to - from)}, Revision: before.GetRevision(),
		})
		m.dropRequeued(from, to)
		r.openPartition(m, o, input)
	}
	m.partial = m.partial && len(m.partitions) < parts && !m.halted
	if len(m.before) > 0 && len(m.partitions) == parts {
		r.reportedNothing(m) // all of them may be kept
	}
}

// partitionBefore returns the previous generation's report of the partition that starts at an instance, or nil if there is
// none.
func (m *partitionedFanOut) partitionBefore(from int) *v1.PartitionReport {
	k := slices.IndexFunc(m.before, func(p *v1.PartitionReport) bool { return int(p.GetFrom()) == from })
	if k < 0 {
		return nil
	}
	return m.before[k]
}

// least returns the smaller of two limits; 0 means no limit.
func least(a, b int32) int32 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// freeSlot returns a free slot among the open partitions, or -1 if there is none.
func (m *partitionedFanOut) freeSlot(width int) int {
	taken := make([]bool, width)
	for _, p := range m.partitions {
		if !p.GetOver() && int(p.GetSlot()) < width {
			taken[p.GetSlot()] = true
		}
	}
	return slices.Index(taken, false)
}

// share returns a slot's portion of a limit; 0 means no limit.
func (m *partitionedFanOut) share(slot, limit, width int) int32 {
	share := limit / width
	if slot < limit%width {
		share++
	}
	return int32(share)
}

// opening describes how to open a partition.
type opening struct {
	from, to    int // instances
	concurrency int32
	before      *v1.PartitionReport // its report from when it was open before, or nil if it never was
	skipped     bool                // besides requeued instances, only skipped ones run again
}

// waitsForChildren reports whether a fan-out cannot open a child workflow now, and shows the wait in the status.
func (r *run) waitsForChildren(m *partitionedFanOut) bool {
	waits, text := r.admission.FreeChildren() <= 0, ""
	if waits {
		text = fmt.Sprintf("waits: %d child workflows of the run are open, the most at once", r.limits.Children)
	}
	if r.status.StoredText(m.task) != text && (waits || m.waits) {
		r.status.SetWaitReason(m.task, text)
	}
	m.waits = waits
	return waits
}

// partitionID returns the workflow ID of the child that runs a partition.
func (r *run) partitionID(p *v1.PartitionReport) string {
	return names.FanOut{Run: r.id, Chain: p.GetChain(), Generation: p.GetGeneration(), Task: p.GetTask(), From: int(p.GetFrom())}.ID()
}

// openPartition starts the child that runs a partition.
func (r *run) openPartition(m *partitionedFanOut, o opening, input *v1.RunInput) {
	from := o.from
	w := &childWorkflow{request: &v1.ChildRequest{Id: r.partitionID(m.partitionFrom(from)), Input: input}}
	w.start = func(prepared *v1.PreparedChild) (string, workflow.ChildWorkflowOptions) {
		if p := m.partitionFrom(from); p != nil { // it may have been prepared before a reset
			f, _ := names.ParseFanOutID(prepared.GetId())
			p.Chain = f.Chain
		}
		return names.FanOutWorkflow, workflow.ChildWorkflowOptions{
			WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			StaticSummary:         fmt.Sprintf("%s[%d] to [%d] of %s", r.graph.Name(m.task), from, o.to-1, r.id),
		}
	}
	w.refused = func(why string) {
		delete(m.children, from)
		r.countPartitions(-1)
		r.endLostPartition(m, from, why)
	}
	w.opened = func() {
		if p := m.partitionFrom(from); p != nil {
			p.First = w.first
		}
		if m.late[from] {
			delete(m.late, from)
			r.orderPartition(m, from)
		}
	}
	r.followPartition(m, from, w)
	r.wantChild(w)
}

// followPartition registers the child of a partition and ends the partition if the child ends without a final report.
func (r *run) followPartition(m *partitionedFanOut, from int, w *childWorkflow) {
	m.children[from] = w
	r.countPartitions(1)
	w.over = func(end *v1.RunEnd) {
		r.countPartitions(-1)
		if m.children[from] == w { // it was not opened again since
			delete(m.children, from)
			if end == nil {
				r.endUnopenedPartition(m, from)
			} else {
				r.endLostPartition(m, from, "its workflow has ended: "+endText(end))
			}
		}
	}
}

// countPartitions adds n to the number of partitions whose children are queued or open.
func (r *run) countPartitions(n int) {
	r.children.partitions += n
	r.admission.SetChildren(r.children.partitions)
}

// reattachPartitions continues with the open partitions of the previous execution.
func (r *run) reattachPartitions(m *partitionedFanOut) {
	if r.in.GetState() == nil {
		return // those of the previous generation have been ended
	}
	for _, p := range m.partitions {
		if !p.GetOver() {
			from := int(p.GetFrom())
			w := &childWorkflow{id: r.partitionID(p), first: p.GetFirst()}
			r.followPartition(m, from, w)
			r.reattachChild(w)
		}
	}
}

// partitionInput returns the input of a partition's child: the task without its dependencies and conditions. The only error is
// errInterrupted.
func (r *run) partitionInput(m *partitionedFanOut, o opening) (*v1.RunInput, error) {
	name, def := r.graph.Name(m.task), r.in.GetDefinition()
	refs := r.in.GetReferences()[name]
	task := proto.CloneOf(r.core.Definition(m.task))
	task.DependsOn, task.Condition, task.When, task.OnFailure, task.Deadline, task.ContinueOnError = nil, "", "", "", "", false
	part := &v1.Partition{
		Chain: r.chain,
		RunId: r.id, Generation: r.in.GetGeneration(), Task: name, From: int32(o.from), To: int32(o.to), Count: int32(m.total),
		Items: r.status.Items(m.task), Concurrency: o.concurrency, MaxFailures: task.GetMaxFailures(),
		Views: map[string]*v1.ParentView{}, Paused: r.admission.Paused(), Claim: r.in.GetGeneration() * claimsOfGeneration,
	}
	part.DurationEstimate = m.durationEstimate()
	if m.halted {
		part.HaltReason = m.haltReason
	}
	var again *v1.Rerun
	if o.before != nil {
		part.Previous, again = r.partitionID(o.before), &v1.Rerun{Failed: !o.skipped, Skipped: o.skipped && !m.halted}
	}
	var back []string
	for _, n := range m.requeuedIn(o.from, o.to) {
		back = append(back, names.InstanceName(name, int(n)))
	}
	part.Ends = r.ancestorEnds(m.task)
	var err error
	if part.Parents, err = r.parentOutputs(m.task); err != nil {
		return nil, err
	}
	if err := r.view(part.Views, slices.Concat(refs.GetTemplates(), refs.GetCache())); err != nil {
		return nil, err
	}
	return &v1.RunInput{
		Definition: &v1.Definition{Name: def.GetName(), Context: r.context, Tasks: map[string]*v1.TaskDefinition{name: task}},
		Input:      r.in.GetInput(), References: map[string]*v1.ConditionReferences{name: refs},
		Options: r.in.GetOptions(), Generation: r.in.GetGeneration(), Partition: part, Rerun: again, Retry: back,
		ParentRun: r.in.GetParentRun(), ParentTask: r.in.GetParentTask(), Depth: r.in.GetDepth(),
		ParentFirst: workflow.GetInfo(r.root).FirstRunID, ByRole: r.in.GetByRole(), SignedDecisions: r.in.GetSignedDecisions(), CacheScope: r.cacheScope(),
	}, nil
}
