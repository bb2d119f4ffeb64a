package shell

import (
	"sync"
	"time"

	"switchyard/activities/executor/shell/procfs"
)

// samplePause is the wait before a look after so many. The first ones come
// soon, because of a task that is over before them nothing is known.
func samplePause(looks int) time.Duration {
	switch looks {
	case 0:
		return 50 * time.Millisecond
	case 1:
		return 200 * time.Millisecond
	case 2:
		return 750 * time.Millisecond
	}
	return 2 * time.Second
}

// sampler looks at the peak memory of a tree from time to time. The high-water
// mark of a process only grows, so a look now and then misses little of it.
//
// It exists because wait4 overstates: a child shares its parent's memory until
// it executes its program, and Linux keeps the peak of that time, too. What it
// reports is thus never below the worker's own peak.
type sampler struct {
	tree tree

	mu      sync.Mutex
	timer   *time.Timer
	looks   int
	peak    int64
	stopped bool
}

func newSampler(t tree) *sampler {
	s := &sampler{tree: t}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(samplePause(0), s.look)
	return s
}

func (s *sampler) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	for _, pid := range s.tree.pids() {
		s.peak = max(s.peak, procfs.PeakMemory(pid))
	}
	s.looks++
	s.timer.Reset(samplePause(s.looks))
}

// stop ends the looks and returns the peak in bytes of the largest process
// seen, 0 when none was.
func (s *sampler) stop() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.timer.Stop()
	return s.peak
}

// peakMemory picks the truth: what wait4 says when it is above the worker's
// own peak, else what was sampled, else 0 for not known.
func peakMemory(waited, baseline, sampled int64) int64 {
	if waited > baseline {
		return waited
	}
	return sampled
}
