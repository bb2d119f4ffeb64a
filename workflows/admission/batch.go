package admission

import (
	"cmp"
	"time"
)

const (
	// batchWork is the target duration of an automatic batch.
	batchWork = time.Second
	// batchLeast is the amount of work below which an automatic batch is not split further to occupy more nodes.
	batchLeast = 100 * time.Millisecond
	// maxBatch is the most instances in an automatic batch.
	maxBatch = 1000
	// defaultPrefetch is how many units of an automatic batch may be without a node.
	defaultPrefetch = 8
)

// sizing decides how many instances of a group form a unit.
type sizing struct {
	batch    Batch
	target   int           // size to which an automatic batch grows; 0 until known
	instance time.Duration // recent duration of one instance; 0 until known
	unplaced int           // number of units of an automatic batch without a node
}

// wait reports whether the next batch must wait until one of the waiting batches has a node.
func (s *sizing) wait() bool {
	return s.batch.Auto && s.unplaced >= cmp.Or(s.batch.Prefetch, defaultPrefetch)
}

// size returns the maximum size of the next unit, given the numbers of waiting instances and of units in flight. An automatic
// batch leaves enough instances for as many other units, whether or not there is a concurrency limit, so that all end at about
// the same time.
func (s *sizing) size(waiting, units, concurrency int) int {
	if !s.batch.Auto {
		return max(s.batch.Size, 1)
	}
	width := max(units+1, cmp.Or(s.batch.Prefetch, defaultPrefetch))
	if concurrency > 0 {
		width = min(width, concurrency)
	}
	share := max((waiting+width-1)/width, s.worth(batchLeast))
	return max(min(s.target, share), 1)
}

// DurationEstimate is what is known of the duration of a group's instances, for automatic batches.
type DurationEstimate struct {
	Instance time.Duration // recent duration of one instance; 0 if unknown
	Batch    int           // size to which batches have grown; 0 if unknown
}

// worth returns how many instances take the given time together.
func (s *sizing) worth(work time.Duration) int {
	if s.instance <= 0 {
		return 1
	}
	return int(min(work/s.instance, maxBatch))
}

// observe updates the estimate from instances that have run in sequence. A batch at most doubles or halves at a time, so that
// one outlier has little effect.
func (s *sizing) observe(instances int, took time.Duration) {
	took = max(took/time.Duration(instances), time.Microsecond)
	if s.instance > 0 {
		took = (s.instance + took) / 2
	}
	s.instance = took
	now := max(s.target, 1)
	s.target = max(min(s.worth(batchWork), 2*now), (now+1)/2, 1)
}
