package admission

import (
	"cmp"
	"time"
)

const (
	// batchWork is what an automatic batch is to take.
	batchWork = time.Second
	// batchLeast is the work below which an automatic batch is not made smaller for the sake of more nodes.
	batchLeast = 100 * time.Millisecond
	// maxBatch is the most instances of an automatic batch.
	maxBatch = 1000
	// defaultPrefetch is how many units of an automatic batch may be without a node.
	defaultPrefetch = 8
)

// sizing decides how many instances of a group make a unit.
type sizing struct {
	batch    Batch
	target   int           // instances that an automatic batch grows to; 0: not known yet
	instance time.Duration // what one has taken of late; 0: not known yet
	unplaced int           // units of an automatic batch without a node
}

// wait says that the next batch is not formed before one of those that wait has a node.
func (s *sizing) wait() bool {
	return s.batch.Auto && s.unplaced >= cmp.Or(s.batch.Prefetch, defaultPrefetch)
}

// size is the most instances that the next unit may have, of those that wait while so many units are under way. An
// automatic batch leaves enough for as many others, concurrency or not, so that at the end all end together.
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

// DurationEstimate is what is known of the instances of a group, for automatic batches.
type DurationEstimate struct {
	Instance time.Duration // what one has taken of late; 0: not known
	Batch    int           // instances that a batch has grown to; 0: not known
}

// worth is how many instances take so long together.
func (s *sizing) worth(work time.Duration) int {
	if s.instance <= 0 {
		return 1
	}
	return int(min(work/s.instance, maxBatch))
}

// observe learns from instances that have run one after the other. A batch at
// most doubles or halves at a time, so that one odd unit does little.
func (s *sizing) observe(instances int, took time.Duration) {
	took = max(took/time.Duration(instances), time.Microsecond)
	if s.instance > 0 {
		took = (s.instance + took) / 2
	}
	s.instance = took
	now := max(s.target, 1)
	s.target = max(min(s.worth(batchWork), 2*now), (now+1)/2, 1)
}
