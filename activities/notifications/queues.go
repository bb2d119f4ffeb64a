package notifications

import (
	"sync"
	"time"
)

// firstMean is how long a delivery is taken to last before one has been measured.
const firstMean = time.Second

// queues bounds the deliveries in progress to each target. A message that finds no place is not held: it gets a time at which to
// come again, so that a slow target keeps no activity slots from others. The zero value is ready for use.
type queues struct {
	mu      sync.Mutex
	targets map[string]*queue // by name; as many as there are names of targets
	taken   sync.WaitGroup    // counts the deliveries in progress to all targets
}

type queue struct {
	inProgress int
	mean       time.Duration // moving average of the time that a delivery takes
	tail       time.Time     // when the message at the end of the line comes again
}

// enter takes a place at a target; leave frees it. leave is nil if all places are taken, or if other messages wait in line and this one
// comes for the first time. The message is then to come again after wait.
func (q *queues) enter(target string, isFirst bool, now func() time.Time) (leave func(), wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.targets[target]
	if line == nil {
		if q.targets == nil {
			q.targets = map[string]*queue{}
		}
		line = &queue{mean: firstMean}
		q.targets[target] = line
	}
	began := now()
	if line.inProgress == sendsAtOnce || isFirst && line.tail.After(began) {
		if line.tail.Before(began.Add(line.mean)) { // the first place is free about then
			line.tail = began.Add(line.mean)
		}
		line.tail = line.tail.Add(line.mean / sendsAtOnce)
		return nil, line.tail.Sub(began)
	}
	line.inProgress++
	q.taken.Add(1)
	return func() {
		defer q.taken.Done()
		q.mu.Lock()
		defer q.mu.Unlock()
		line.inProgress--
		line.mean += (now().Sub(began) - line.mean) / 8
	}, 0
}
