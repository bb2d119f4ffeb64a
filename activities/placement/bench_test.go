package placement

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// benchFleet returns nodes with width slots and cores. Every fourth node has four GPUs on two NUMA
// nodes.
func benchFleet(n int, width int32, sequence int64) []Node {
	out := make([]*v1.NodeSnapshot, n)
	for i := range out {
		out[i] = aNode(fmt.Sprintf("n%05d", i), slots(width), labels("server", fmt.Sprintf("zone-%d", i%4)), func(s *v1.NodeSnapshot) {
			s.Cpu.Cores, s.Cpu.UsagePercent = width, float64((i*7+int(sequence))%100)
			s.Memory.TotalMb, s.Memory.AvailableMb = 65536, 50000
			s.Sequence = sequence
			if i%4 == 0 {
				s.Labels = append(s.Labels, "gpu")
				gpusOn(0, 0, 1, 1)(s)
				numaNodes(2, width/2, 32768)(s)
			}
		})
	}
	return live(out...)
}

// benchClasses returns a change that makes a request belong to one of twenty classes.
func benchClasses(i int) func(*v1.TaskRequest) {
	return func(r *v1.TaskRequest) {
		kind := i % 20
		withCores([]float64{0.25, 0.5, 1, 1}[kind%4])(r)
		r.Priority = int32(kind % 3)
		r.Resources.MemoryMb = int32(kind%5) * 256
		switch {
		case kind < 2:
			r.Resources.Gpus = 1
		case kind < 8:
			r.Constraints.NodeLabels = []string{"server", fmt.Sprintf("zone-%d", kind%4)}
		case kind < 10:
			r.Constraints.AnyLabels = []string{"gpu", "zone-2"}
		case kind == 10:
			r.Constraints.MinDiskGb = 20
		}
	}
}

func benchRequests(first, n int) []*v1.TaskRequest {
	out := make([]*v1.TaskRequest, n)
	for i := range out {
		out[i] = aTask(fmt.Sprintf("t%d", first+i), benchClasses(first+i))
	}
	return out
}

func benchQueue() *Queue {
	return New(Options{Now: newClock().now, Rand: rand.New(rand.NewPCG(1, 2))})
}

// cpuTime returns the processor time that this process has used. On a shared machine it is more
// meaningful than elapsed time.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var benchSizes = []int{100, 1000, 10_000}

// BenchmarkBatch requests and places 10,000 tasks of twenty classes at once.
func BenchmarkBatch(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			reqs, fleet := benchRequests(0, 10_000), benchFleet(n, int32(max(16, 16_000/n)), 1)
			decisions, spent := 0, time.Duration(0)
			for b.Loop() {
				q := benchQueue()
				q.SetNodes(fleet)
				began := cpuTime()
				q.Request("r", reqs)
				q.Place()
				placed, _ := q.Take("r")
				spent += cpuTime() - began
				decisions += len(placed)
			}
			b.ReportMetric(float64(decisions)/spent.Seconds(), "decisions/cpu-s")
		})
	}
}

// BenchmarkOneByOne keeps a fleet three quarters full and places one task for each that ends.
func BenchmarkOneByOne(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			c := newClock()
			q := New(Options{Now: c.now, Rand: rand.New(rand.NewPCG(1, 2))})
			q.SetNodes(benchFleet(n, 16, 1))
			next := 12 * n
			q.Request("r", benchRequests(0, next))
			q.Place()
			placed, _ := q.Take("r")
			decisions, began := 0, cpuTime()
			for b.Loop() {
				c.add(time.Millisecond) // attempts take more than a second, which disables prefetching
				a := placed[0]
				placed = placed[1:]
				release(q, "r", a.Task, a.Claim)
				q.Request("r", benchRequests(next, 1))
				next++
				q.Place()
				more, _ := q.Take("r")
				decisions += len(more)
				placed = append(placed, more...)
			}
			b.ReportMetric(float64(decisions)/(cpuTime()-began).Seconds(), "decisions/cpu-s")
		})
	}
}

// BenchmarkRefresh measures new snapshots of all nodes of a full fleet and the pass after them,
// with 5,000 waiting tasks.
func BenchmarkRefresh(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			c := newClock()
			q := New(Options{Now: c.now, Rand: rand.New(rand.NewPCG(1, 2))})
			fleets := [][]Node{benchFleet(n, 8, 1), benchFleet(n, 8, 2)}
			q.SetNodes(fleets[0])
			q.Request("r", benchRequests(0, 8*n+5000))
			q.Place()
			q.Take("r")
			turn, began := 0, cpuTime()
			for b.Loop() {
				c.add(time.Second)
				turn++
				q.SetNodes(fleets[turn%2])
				q.Place()
				q.Take("r")
			}
			b.ReportMetric(float64((cpuTime()-began).Milliseconds())/float64(turn), "cpu-ms/op")
		})
	}
}

// BenchmarkNothingChanged measures a pass without changes, with 10,000 waiting tasks.
func BenchmarkNothingChanged(b *testing.B) {
	q := newQueue(newClock(), aNode("a", slots(1)))
	q.Request("r", requests(0, 10_000))
	q.Place()
	q.Take("r")
	for b.Loop() {
		q.Place()
	}
}
