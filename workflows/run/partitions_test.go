package run

import (
	"slices"
	"testing"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// fakePartitionWorkflows stands for the child workflows of partitions and for everything else that partitions need.
type fakePartitionWorkflows struct {
	older     bool
	opened    []int // by task
	cancelled []*childWorkflow
	orders    []*v1.PartitionOrder
	nodes     []string
}

func (f *fakePartitionWorkflows) isPending() bool   { return f.older }
func (f *fakePartitionWorkflows) isCancelled() bool { return false }
func (f *fakePartitionWorkflows) cancel(w *childWorkflow, _ string) {
	f.cancelled = append(f.cancelled, w)
}
func (f *fakePartitionWorkflows) merge(u ...*structpb.Struct) []string         { return make([]string, len(u)) }
func (f *fakePartitionWorkflows) open(m *partitionedFanOut)                    { f.opened = append(f.opened, m.task) }
func (f *fakePartitionWorkflows) reattach(*partitionedFanOut)                  {}
func (f *fakePartitionWorkflows) addNode(node string)                          { f.nodes = append(f.nodes, node) }
func (f *fakePartitionWorkflows) watch(workflow.Future, func(workflow.Future)) {}

func (f *fakePartitionWorkflows) signal(_, _ string, arg any, _ int) workflow.Future {
	f.orders = append(f.orders, arg.(*v1.PartitionOrder))
	return nil
}

// newPartitions returns the partitions of a run whose only task has 200 instances, in two partitions that are open.
func newPartitions(t *testing.T) (*partitions, *partitionedFanOut, *fakePartitionWorkflows) {
	t.Helper()
	x := newExecution(t, tasks(map[string]*v1.TaskDefinition{"each": {Type: v1.TypeShell, Parallel: structpb.NewNumberValue(200), MaxFailures: 1}}))
	x.limits.Instances, x.limits.PartitionInstances = 100, 100
	f := &fakePartitionWorkflows{}
	ps := &partitions{execution: x, abandoned: f, children: f, commands: f, contexts: f, openings: f, outbox: f, view: f}
	apply(x, x.core.Start())
	if !ps.isLarge(0, 200) || ps.isLarge(0, 100) {
		t.Fatal("a fan-out of 200 instances is large, one of 100 is not")
	}
	ps.expandLarge(0, 200)
	apply(x, x.core.Apply(ps.takeEvents()...))
	m := ps.of(0)
	for from := 0; from < 200; from += 100 {
		m.partitions = append(m.partitions, &v1.PartitionReport{Task: "each", From: int32(from), Counts: map[string]int32{v1.TaskRunning: 100}})
		m.children[from] = &childWorkflow{id: "child", attached: true}
	}
	return ps, m, f
}

// Too many failures in one partition halt all of them.
func TestFailuresHaltAllPartitions(t *testing.T) {
	t.Parallel()
	ps, m, f := newPartitions(t)
	m.partitions[0].Counts = map[string]int32{v1.TaskRunning: 99, v1.TaskFailed: 1}
	if ps.reported(m); m.halted || len(f.orders) > 0 {
		t.Fatal("the failure that the task may have halts it")
	}
	m.partitions[1].Counts = map[string]int32{v1.TaskRunning: 99, v1.TaskDeadLetter: 1}
	ps.reported(m)
	if !m.halted || len(f.orders) != 2 || !f.orders[0].GetHalt() || f.orders[0].GetHaltReason() != v1.ReasonMaxFailures {
		t.Errorf("halted: %v, orders %v", m.halted, f.orders)
	}
	if ps.hasEvents() {
		t.Error("the task ends before its partitions")
	}
}

// The task ends with its last partition. A partition whose workflow has ended without a report counts as lost.
func TestTaskEndsWithItsLastPartition(t *testing.T) {
	t.Parallel()
	ps, m, _ := newPartitions(t)
	m.partitions[0].Counts, m.partitions[0].Over, m.partitions[0].State = map[string]int32{v1.TaskCompleted: 100}, true, v1.TaskCompleted
	if ps.reported(m); ps.hasEvents() {
		t.Fatal("the task ends with its first partition")
	}
	ps.endLost(m, 100, "its workflow has ended")
	ps.endLost(m, 100, "its workflow has ended")
	events := slices.Compact(ps.takeEvents()) // the core ignores a second end
	if len(events) != 1 {
		t.Fatalf("events: %+v", events)
	}
	if end, ok := events[0].(dag.Ended); !ok || end.State != v1.TaskFailed || end.Reason != v1.ReasonInstances ||
		end.Error != "100 of 200 instances failed: instances from 100 on: its workflow has ended" {
		t.Errorf("the task ends with %+v", events[0])
	}
	if counts := ps.of(0).counts; counts[v1.TaskLost] != 100 || counts[v1.TaskRunning] != 0 {
		t.Errorf("the status counts %v", counts)
	}
}

// A stop reaches open partitions as an order, and keeps those from starting that have no workflow yet.
func TestStopReachesAllPartitions(t *testing.T) {
	t.Parallel()
	ps, m, f := newPartitions(t)
	m.children[100] = &childWorkflow{} // not prepared yet
	if !ps.stop(0) || !ps.stop(0) {
		t.Fatal("the fan-out is not in the care of partitions")
	}
	if len(f.orders) != 1 || !f.orders[0].GetCancel() || !slices.Equal(f.cancelled, []*childWorkflow{m.children[100]}) {
		t.Errorf("orders %v, %d cancelled", f.orders, len(f.cancelled))
	}
	if ps.stop(1) {
		t.Error("a task without partitions is stopped")
	}
}

// An order for a partition whose workflow is starting is sent once the workflow is open.
func TestOrdersWaitForTheWorkflow(t *testing.T) {
	t.Parallel()
	ps, m, f := newPartitions(t)
	m.children[0].attached = false
	ps.halt([]int{0})
	if len(f.orders) != 1 || !m.late[0] || m.late[100] {
		t.Errorf("%d orders, late: %v", len(f.orders), m.late)
	}
}

// No partition opens while attempts of the previous generation may run.
func TestPartitionsOpenAfterAbandonedAttempts(t *testing.T) {
	t.Parallel()
	ps, _, f := newPartitions(t)
	f.older = true
	if ps.openAll(); len(f.opened) > 0 {
		t.Error("a partition opens too early")
	}
	f.older = false
	if ps.openAll(); !slices.Equal(f.opened, []int{0}) {
		t.Errorf("opened: %v", f.opened)
	}
}
