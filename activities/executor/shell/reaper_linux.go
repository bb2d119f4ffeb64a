package shell

import (
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// slowWait is how long a child of somebody else's in this process may have been
// dead before its parent code asks for its exit status.
const slowWait = time.Second

// reaper takes dead orphans off the hands of a process that adopts them, as a
// subreaper or as process 1, without taking an exit status that other code waits
// for: an orphan of an attempt is in a foreign session, and the children of
// other code are in this process's own, but for those that lead a new one. A dead
// leader of a session is therefore left alone for a while at first.
//
// A nil reaper does nothing.
type reaper struct {
	mu sync.Mutex
	// kept are the programs of attempts, which are waited for by pid.
	kept map[int]bool
	// leaders holds when a dead session leader was first seen.
	leaders map[int]time.Time
}

// adopts tells whether orphans become children of this process.
func adopts() bool {
	var subreaper int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&subreaper)), 0, 0, 0)
	return os.Getpid() == 1 || err == nil && subreaper == 1
}

func newReaper() *reaper {
	return &reaper{kept: make(map[int]bool), leaders: make(map[int]time.Time)}
}

// keep leaves a process to others until forget.
func (r *reaper) keep(pid int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept[pid] = true
}

func (r *reaper) forget(pid int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kept, pid)
}

// sweep reaps the orphans that are dead.
func (r *reaper) sweep() { r.reap(slowWait) }

// sweepAll also reaps dead session leaders that have just been seen.
func (r *reaper) sweepAll() { r.reap(0) }

func (r *reaper) reap(patience time.Duration) {
	if r == nil || !zombieChild() {
		return
	}
	session, err := unix.Getsid(0)
	if err != nil {
		return
	}
	all, err := processes()
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	self, now := os.Getpid(), time.Now()
	seen := make(map[int]time.Time)
	for _, p := range all {
		if !p.zombie || p.parent != self || p.session == session || r.kept[p.pid] {
			continue
		}
		if p.session == p.pid && patience > 0 {
			since, ok := r.leaders[p.pid]
			if !ok {
				since = now
			}
			if now.Sub(since) < patience {
				seen[p.pid] = since
				continue
			}
		}
		reap(p.pid)
	}
	r.leaders = seen
}

// zombieChild tells at the cost of one call whether there is anything to do.
func zombieChild() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

// reap takes the status of a dead child; of a process that is none, nothing.
func reap(pid int) {
	for {
		_, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		if err != unix.EINTR {
			return
		}
	}
}
