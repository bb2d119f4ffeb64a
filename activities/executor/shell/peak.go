package shell

import (
	"sync"
	"time"

	"switchyard/activities/executor/shell/procfs"
)

// samplePause returns the pause before the next sample, given the number of samples so far. The
// first ones come soon, since nothing is known about a task that ends before them.
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

// sampler samples the peak memory of a tree from time to time. The high-water
// mark of a process only grows, so occasional samples miss little.
//
// It exists because wait4 overstates the peak: a child shares its parent's
// memory until it executes its program, and Linux includes the peak of that
// time. So wait4 never reports less than the worker's own peak.
type sampler struct {
	tree tree

	mu      sync.Mutex
	timer   *time.Timer
	looks   int
	peak    int64
	stopped bool
	// program is the PID of a program whose processor time is sampled, too, because it is not a child of this process, or 0. cpu is its
	// processor time at the newest look.
	program int
	cpu     time.Duration
}

// follow samples the processor time of a program, too.
func (s *sampler) follow(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.program = pid
}

func newSampler(t tree) *sampler {
	s := &sampler{tree: t}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(samplePause(0), s.sample)
	return s
}

func (s *sampler) sample() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	for _, pid := range s.tree.pids() {
		s.peak = max(s.peak, procfs.PeakMemory(pid))
	}
	if s.program != 0 {
		s.cpu = max(s.cpu, procfs.CPUTime(s.program))
	}
	s.looks++
	s.timer.Reset(samplePause(s.looks))
}

// stop stops sampling and returns the peak of the largest process seen, in
// bytes, or 0 if none was seen.
func (s *sampler) stop() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.timer.Stop()
	return s.peak
}

// peakMemory returns the most reliable peak: the one from wait4 if it exceeds
// the worker's own, else the sampled one, else 0 for unknown.
func peakMemory(waited, baseline, sampled int64) int64 {
	if waited > baseline {
		return waited
	}
	return sampled
}
