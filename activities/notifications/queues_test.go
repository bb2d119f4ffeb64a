package notifications

import (
	"container/heap"
	"testing"
	"time"
)

// TestSlowTargetIsUsedToTheFullByMessagesThatComeAgain lets 1,000 messages arrive at once at a target that takes 2 s for each.
func TestSlowTargetIsUsedToTheFullByMessagesThatComeAgain(t *testing.T) {
	const messages, took = 1000, 2 * time.Second
	began := time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
	now, q, line, comes := began, queues{}, arrivals{}, 0
	for range messages {
		line = append(line, arrival{at: began, isFirst: true})
	}
	for len(line) > 0 {
		next := heap.Pop(&line).(arrival)
		now = next.at
		if next.leave != nil {
			next.leave()
			continue
		}
		comes++
		leave, wait := q.enter("slow", next.isFirst, func() time.Time { return now })
		if leave != nil {
			heap.Push(&line, arrival{at: now.Add(took), leave: leave})
			continue
		}
		heap.Push(&line, arrival{at: now.Add(wait)})
	}
	if best := messages / sendsAtOnce * took; now.Sub(began) > best*5/4 || comes > 3*messages {
		t.Errorf("all were sent after %s, and each came %d times; the best would be %s", now.Sub(began), comes/messages, best)
	}
}

func TestTargetsDoNotWaitForEachOther(t *testing.T) {
	q := queues{}
	for range sendsAtOnce {
		if leave, _ := q.enter("slow", true, time.Now); leave == nil {
			t.Fatal("the target has no place although it is idle")
		}
	}
	if leave, wait := q.enter("slow", true, time.Now); leave != nil || wait <= 0 {
		t.Errorf("a target with %d deliveries in progress has a place, or asks to come again after %s", sendsAtOnce, wait)
	}
	if leave, _ := q.enter("other", true, time.Now); leave == nil {
		t.Error("another target has no place")
	}
}

// arrival is a message that comes to a target, or, with leave, the end of a delivery.
type arrival struct {
	at      time.Time
	isFirst bool
	leave   func()
}

// arrivals is a heap, the earliest first; at the same time, ends of deliveries come first.
type arrivals []arrival

func (a arrivals) Len() int { return len(a) }
func (a arrivals) Less(i, j int) bool {
	if a[i].at.Equal(a[j].at) {
		return a[i].leave != nil && a[j].leave == nil
	}
	return a[i].at.Before(a[j].at)
}
func (a arrivals) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)   { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}
