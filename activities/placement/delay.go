package placement

import (
	"fmt"
	"time"
)

const (
	// firstDelay is the delay of a request that was refused twice in a row. One refusal only means
	// that a snapshot was stale; two mean that the room is contended.
	firstDelay = 100 * time.Millisecond
	// longestDelay bounds the doubling. Users still accept a delay of this length.
	longestDelay = 5 * time.Second
)

// delayOf returns how long a request with that many refusals in a row waits before it is placed.
func delayOf(refusals int32) time.Duration {
	switch {
	case refusals < 2:
		return 0
	case refusals >= 8: // beyond the bound, where further shifting would eventually overflow
		return longestDelay
	}
	return min(firstDelay<<(refusals-2), longestDelay)
}

// delayText explains a delay.
func delayText(d time.Duration, refusals int32) string {
	return fmt.Sprintf("waits for %v: nodes had no room for it %d times in a row", d, refusals)
}

// delayHeap is a heap of delayed requests with the earliest due time on top.
type delayHeap []*request

func (h delayHeap) Len() int           { return len(h) }
func (h delayHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h delayHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *delayHeap) Push(x any) {
	r := x.(*request)
	r.index = len(*h)
	*h = append(*h, r)
}

// Pop implements heap.Interface.
func (h *delayHeap) Pop() any {
	end := len(*h) - 1
	r := (*h)[end]
	(*h)[end] = nil
	*h = (*h)[:end]
	return r
}
