package placement

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// clock is a clock that a test advances by hand.
type clock struct{ t time.Time }

func newClock() *clock { return &clock{t: time.Unix(1_700_000_000, 0)} }

func (c *clock) now() time.Time { return c.t }

func (c *clock) add(d time.Duration) { c.t = c.t.Add(d) }

// newQueue returns a queue with the given clock and nodes that makes no reservations.
func newQueue(c *clock, nodes ...*v1.NodeSnapshot) *Queue {
	q := New(Options{Now: c.now, Epoch: "e1", NoReservations: true})
	q.SetNodes(live(nodes...))
	return q
}

// live returns active nodes with the given snapshots.
func live(snapshots ...*v1.NodeSnapshot) []Node {
	out := make([]Node, len(snapshots))
	for i, s := range snapshots {
		out[i].Snapshot = s
	}
	return out
}

// aNode returns an idle node that runs shell tasks, with 4 cores, 4 slots, 8 GiB of memory and a
// disk of 100 GB.
func aNode(name string, changes ...func(*v1.NodeSnapshot)) *v1.NodeSnapshot {
	n := &v1.NodeSnapshot{
		Name:        name,
		Executors:   []string{"shell"},
		MaxParallel: 4,
		Cpu:         &v1.CpuSnapshot{Cores: 4},
		Memory:      &v1.MemorySnapshot{TotalMb: 8192, AvailableMb: 8192},
		Disk:        &v1.DiskSnapshot{TotalGb: 100, AvailableGb: 50},
	}
	for _, change := range changes {
		change(n)
	}
	return n
}

func labels(l ...string) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) { n.Labels = l }
}

func keptFor(taints ...string) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) { n.Terms = &v1.NodeTerms{KeptFor: taints} }
}

func slots(k int32) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) { n.MaxParallel = k }
}

func onMachine(m string) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) { n.Machine = m }
}

func gpus(k int) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) {
		for i := range k {
			n.Gpus = append(n.Gpus, &v1.GpuSnapshot{Index: int32(i)})
		}
	}
}

// gpusOn gives a node one GPU for each NUMA node in numa. -1 means that the GPU does not report its
// NUMA node.
func gpusOn(numa ...int32) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) {
		for i, on := range numa {
			g := &v1.GpuSnapshot{Index: int32(i)}
			if on >= 0 {
				g.NumaNode = &on
			}
			n.Gpus = append(n.Gpus, g)
		}
	}
}

// numaNodes gives a node k NUMA nodes with the given cores and memory each.
func numaNodes(k, cores int32, memoryMB float64) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) {
		for i := range k {
			n.Numa = append(n.Numa, &v1.NumaSnapshot{Index: i, Cpus: make([]int32, cores), MemoryTotalMb: memoryMB})
		}
	}
}

func running(runID, task string, claim int32) func(*v1.NodeSnapshot) {
	return func(n *v1.NodeSnapshot) {
		n.Running = append(n.Running, &v1.RunningAttempt{RunId: runID, Task: task, Claim: claim})
	}
}

// aTask returns a request for claim 1 of a shell task.
func aTask(task string, changes ...func(*historyv1.TaskRequest)) *historyv1.TaskRequest {
	r := &historyv1.TaskRequest{Task: task, Claim: 1, Type: "shell", Constraints: &v1.Constraints{}, Resources: &v1.Resources{}}
	for _, change := range changes {
		change(r)
	}
	return r
}

func withCores(c float64) func(*historyv1.TaskRequest) {
	return func(r *historyv1.TaskRequest) { r.Resources.Cores = &c }
}

func withClaim(c int32) func(*historyv1.TaskRequest) {
	return func(r *historyv1.TaskRequest) { r.Claim = c }
}

func withPriority(p int32) func(*historyv1.TaskRequest) {
	return func(r *historyv1.TaskRequest) { r.Priority = p }
}

func queuedAt(t time.Time) func(*historyv1.TaskRequest) {
	return func(r *historyv1.TaskRequest) { r.QueuedAt = timestamppb.New(t) }
}

func constrained(change func(*v1.Constraints)) func(*historyv1.TaskRequest) {
	return func(r *historyv1.TaskRequest) { change(r.Constraints) }
}

// placeAll makes a pass and returns the new assignments and reasons of a run by task.
func placeAll(t *testing.T, q *Queue, runID string) (nodes, reasons map[string]string) {
	t.Helper()
	q.Place()
	nodes, reasons = map[string]string{}, map[string]string{}
	placed, stuck := q.Take(runID)
	for _, a := range placed {
		nodes[a.Task] = a.Node
	}
	for _, w := range stuck {
		reasons[w.Task] = w.Reason
	}
	return nodes, reasons
}

func release(q *Queue, runID, task string, claim int32) {
	q.Release(runID, []*historyv1.ClaimRef{{Task: task, Claim: claim, Outcome: v1.OutcomeDone}})
}
