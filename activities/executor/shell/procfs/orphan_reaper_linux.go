package procfs

import (
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// slowWait is how long a dead child of other code in this process is left unreaped, so that this
// code can ask for its exit status.
const slowWait = time.Second

// OrphanReaper reaps dead orphans in a process that adopts them, as a subreaper or as process 1. It
// does not take exit statuses that other code waits for. An orphan of an attempt is in a foreign
// session, while children of other code are in this process's own session, unless they lead a new
// one. So the reaper leaves a dead session leader alone for a while first.
//
// All Executors of a process share one reaper, as they share its children, so that none takes the
// exit status of another's program.
type OrphanReaper struct {
	mu sync.Mutex
	// users counts the open Executors.
	users int
	// adopting reports that this process adopts orphans. Until then nothing is reaped.
	adopting bool
	// excluded holds the PIDs of attempts' programs, which are waited for individually.
	excluded map[int]bool
	// leaders holds when each dead session leader was first seen.
	leaders map[int]time.Time
}

// adoptsOrphans reports whether orphans become children of this process.
func adoptsOrphans() bool {
	var subreaper int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&subreaper)), 0, 0, 0)
	return os.Getpid() == 1 || err == nil && subreaper == 1
}

// Orphans is the reaper of this process.
var Orphans = &OrphanReaper{excluded: make(map[int]bool), leaders: make(map[int]time.Time)}

// Open registers one more Executor and returns the reaper. The Executor calls Close in the end.
func (r *OrphanReaper) Open() *OrphanReaper {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.users++
	r.adopting = r.adopting || adoptsOrphans()
	return r
}

// Close reaps dead orphans. The last Executor to close also reaps session leaders that have just
// died. Before that, such a leader may be a program that another Executor has started and not
// excluded yet.
func (r *OrphanReaper) Close() {
	r.mu.Lock()
	r.users--
	last := r.users == 0
	r.mu.Unlock()
	if last {
		r.reap(0)
	} else {
		r.Reap()
	}
}

// Exclude keeps a process from being reaped until Include.
func (r *OrphanReaper) Exclude(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.excluded[pid] = true
}

// Include ends Exclude for a process.
func (r *OrphanReaper) Include(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.excluded, pid)
}

// Reap reaps the dead orphans.
func (r *OrphanReaper) Reap() { r.reap(slowWait) }

func (r *OrphanReaper) reap(patience time.Duration) {
	r.mu.Lock()
	adopting := r.adopting
	r.mu.Unlock()
	if !adopting || !hasZombieChild() {
		return
	}
	session, err := unix.Getsid(0)
	if err != nil {
		return
	}
	all, err := List()
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	self, now := os.Getpid(), time.Now()
	seen := make(map[int]time.Time)
	for _, p := range all {
		if !p.Zombie || p.Parent != self || p.session == session || r.excluded[p.PID] {
			continue
		}
		if p.session == p.PID && patience > 0 {
			since, ok := r.leaders[p.PID]
			if !ok {
				since = now
			}
			if now.Sub(since) < patience {
				seen[p.PID] = since
				continue
			}
		}
		ReapChild(p.PID)
	}
	r.leaders = seen
}

// hasZombieChild reports whether there is anything to reap, at the cost of one system call.
func hasZombieChild() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

// ReapChild reaps a dead child. It does nothing for any other process.
func ReapChild(pid int) {
	for {
		_, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		if err != unix.EINTR {
			return
		}
	}
}
