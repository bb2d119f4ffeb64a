package placement

import (
	"fmt"
	"testing"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

func benchFleet(n int, width int32) []*v1.NodeSnapshot {
	out := make([]*v1.NodeSnapshot, n)
	for i := range out {
		out[i] = aNode(fmt.Sprintf("n%04d", i), slots(width), labels("server", "linux"), func(s *v1.NodeSnapshot) {
			s.Cpu.Cores, s.Cpu.UsagePercent = width, float64(i%100)
		})
	}
	return out
}

// BenchmarkBatch requests and places 10,000 tasks that all fit.
func BenchmarkBatch(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			reqs := requests(0, 10_000, constrained(func(c *v1.Constraints) { c.NodeLabels = []string{"server"} }))
			for b.Loop() {
				q := newQueue(newClock(), benchFleet(n, int32(10_000/n))...)
				q.Request("r", reqs)
				q.Place()
				if placed, _ := q.Take("r"); len(placed) != len(reqs) {
					b.Fatalf("placed %d", len(placed))
				}
			}
		})
	}
}

// BenchmarkOneByOne has 10,000 requests wait and places one for each that ends.
func BenchmarkOneByOne(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			c := newClock()
			q := newQueue(c, benchFleet(n, 1)...)
			q.Request("r", requests(0, 10_000+n))
			q.Place()
			placed, _ := q.Take("r")
			next := 20_000
			for b.Loop() {
				c.add(time.Minute) // long attempts, so that nothing is filled ahead
				a := placed[0]
				placed = placed[1:]
				release(q, "r", a.Task, a.Claim)
				q.Request("r", requests(next, 1))
				next++
				q.Place()
				more, _ := q.Take("r")
				if len(more) != 1 {
					b.Fatalf("placed %d", len(more))
				}
				placed = append(placed, more...)
			}
		})
	}
}

// BenchmarkFullFleet is the pass after new snapshots of 1,000 full nodes, with 5,000 waiting.
func BenchmarkFullFleet(b *testing.B) {
	c := newClock()
	q := newQueue(c, benchFleet(1000, 1)...)
	q.Request("r", requests(0, 6000))
	q.Place()
	q.Take("r")
	fleets := [][]*v1.NodeSnapshot{benchFleet(1000, 1), benchFleet(1000, 1)}
	turn := 0
	for b.Loop() {
		turn++
		q.SetNodes(fleets[turn%2])
		q.Place()
	}
}

// BenchmarkNothingChanged is a pass with 10,000 waiting.
func BenchmarkNothingChanged(b *testing.B) {
	q := newQueue(newClock(), benchFleet(1, 1)...)
	q.Request("r", requests(0, 10_000))
	q.Place()
	q.Take("r")
	for b.Loop() {
		q.Place()
	}
}
