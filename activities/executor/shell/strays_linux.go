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

// strayPause is the time from the end of an attempt to the look for what it has left outside of
// its cgroup. To look takes milliseconds, so all attempts that have ended by then share one.
const strayPause = time.Second

// strays ends what has outlived its attempt because it had moved to another cgroup, such as the
// root, as a privileged program can. It is found by the marker in its environment, or by descent
// from what is.
type strays struct {
	logger *slog.Logger
	// since is when this process was started; what is older is no attempt's.
	since int

	mu sync.Mutex
	// ended are the ids of attempts that have ended and were not looked for since.
	ended map[string]bool
	timer *time.Timer // nil when no look is due
}

func newStrays(logger *slog.Logger) *strays {
	s := &strays{logger: logger, ended: make(map[string]bool)}
	if self, err := procfs.Read(strconv.Itoa(os.Getpid())); err == nil {
		s.since = self.Start
	}
	return s
}

// hasBegun takes an id as that of an attempt that runs.
func (s *strays) hasBegun(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ended, id)
}

// hasEnded has the processes of an attempt that has ended looked for.
func (s *strays) hasEnded(id string) {
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

// close looks for what is left without waiting.
func (s *strays) close() {
	s.mu.Lock()
	due := s.timer != nil && s.timer.Stop()
	s.mu.Unlock()
	if due {
		s.sweep()
	}
}

// sweep ends the strays of all attempts that have ended. One of such an id does not begin meanwhile.
func (s *strays) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = nil
	for left := range maxSweeps {
		found := s.find()
		for pid, id := range found {
			_ = unix.Kill(pid, unix.SIGKILL)
			if left == 0 {
				s.logger.Warn("a process had left the cgroup of its attempt and outlived it; it was ended", "attempt", id, "pid", pid)
			}
		}
		if len(found) == 0 {
			break
		}
	}
	clear(s.ended)
}

// maxSweeps bounds the looks for what strays fork while they are being ended.
const maxSweeps = 10

// find returns the ids of the attempts of the strays by their pids.
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
