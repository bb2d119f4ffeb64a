package shell

import (
	"bytes"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor/shell/procfs"
)

// strayPause is the time from the end of an attempt to the search for processes that left its
// cgroup. A search takes milliseconds, so all attempts that have ended by then share one.
const strayPause = time.Second

// strays kills processes that outlived their attempt by moving to another cgroup, such as the root,
// as a privileged program can. It finds them by the marker in their environment, or by descent from
// such a process.
type strays struct {
	logger *slog.Logger
	mu     sync.Mutex
	// since is the start time of this process, or of the oldest attempt that an earlier worker has left. Older processes belong to no
	// attempt.
	since int
	// ended holds the ids of attempts that have ended since the last search.
	ended map[string]bool
	timer *time.Timer // nil unless a search is due
}

func newStrays(logger *slog.Logger) *strays {
	s := &strays{logger: logger, ended: make(map[string]bool)}
	if self, err := procfs.Read(strconv.Itoa(os.Getpid())); err == nil {
		s.since = self.Start
	}
	return s
}

// noteBegin records that an attempt with the id is running.
func (s *strays) noteBegin(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ended, id)
}

// reachBack includes processes that started at a time or later.
func (s *strays) reachBack(since int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since > 0 {
		s.since = min(s.since, since)
	}
}

// noteEnd schedules a search for the processes of an attempt that has ended.
func (s *strays) noteEnd(id string) {
	if id == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[id] = true
	if s.timer == nil {
		s.timer = time.AfterFunc(strayPause, s.sweep)
	}
}

// close carries out a due search at once.
func (s *strays) close() {
	s.mu.Lock()
	due := s.timer != nil && s.timer.Stop()
	s.mu.Unlock()
	if due {
		s.sweep()
	}
}

// sweep kills the strays of all attempts that have ended. No attempt with such an id can begin
// meanwhile.
func (s *strays) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = nil
	for left := range maxSweeps {
		found := s.find()
		for pid, id := range found {
			_ = unix.Kill(pid, unix.SIGKILL)
			if left == 0 {
				s.logger.Warn("killed a process that left the cgroup of its attempt and outlived it", "attempt", id, "pid", pid)
			}
		}
		if len(found) == 0 {
			break
		}
	}
	clear(s.ended)
}

// maxSweeps bounds how often sweep searches again for processes that strays fork while they are
// being killed.
const maxSweeps = 10

// find returns the strays, as a map from PIDs to attempt ids.
func (s *strays) find() map[int]string {
	all, err := procfs.List()
	if err != nil {
		return nil
	}
	found := map[int]string{}
	var buffer bytes.Buffer
	for _, p := range all {
		if p.Zombie || p.Start < s.since || p.PID == os.Getpid() {
			continue
		}
		if id := procfs.MarkerOf(procfs.Environ(p.PID, &buffer)); s.ended[id] {
			found[p.PID] = id
		}
	}
	for grown := len(found) > 0; grown; {
		grown = false
		for _, p := range all {
			if id, child := found[p.Parent]; child && found[p.PID] == "" && !p.Zombie {
				found[p.PID] = id
				grown = true
			}
		}
	}
	return found
}
