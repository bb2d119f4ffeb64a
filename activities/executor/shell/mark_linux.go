package shell

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
)

// marks find the processes of attempts in /proc.
type marks struct {
	guard   *watchdog
	orphans *reaper
}

func newMarks(guard *watchdog) (*marks, error) {
	if _, err := processes(); err != nil {
		return nil, err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	return &marks{guard: guard, orphans: orphans.open()}, nil
}

func (m *marks) mechanism() Mechanism { return Mark }

// close leaves the process a subreaper: another Executor may count on it.
func (m *marks) close() error {
	m.orphans.close()
	return nil
}

func (m *marks) enclose(id string, lease *executor.Lease, _ executor.Limits) (tree, error) {
	if err := m.guard.add(id, lease); err != nil {
		return nil, err
	}
	return &marked{all: m, id: id, finder: newFinder(id)}, nil
}

// marked is one attempt.
type marked struct {
	all    *marks
	id     string
	leader int

	mu     sync.Mutex
	finder *finder
}

func (m *marked) attr() *syscall.SysProcAttr { return sessionAttr() }
func (m *marked) join() string               { return "" }
func (m *marked) oomKilled() bool            { return false }
func (m *marked) died()                      {}

func (m *marked) started(pid int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leader = pid
	m.finder.sessions[pid] = true
	if p, err := readProcess(strconv.Itoa(pid)); err == nil {
		m.finder.since = p.start
	}
	m.all.orphans.keep(pid)
}

// find lists the living processes, and takes the dead ones that this process
// has adopted off its hands, all but the leader.
func (m *marked) find() []process {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leader == 0 {
		return nil
	}
	living, dead := m.finder.find()
	for _, p := range dead {
		if p.pid != m.leader {
			reap(p.pid)
		}
	}
	return living
}

func (m *marked) pids() []int {
	var pids []int
	for _, p := range m.find() {
		pids = append(pids, p.pid)
	}
	return pids
}

func (m *marked) terminate() {
	m.all.guard.stopping(m.id)
	signalGroup(m.leader, syscall.SIGTERM)
	for _, p := range m.find() {
		if p.group != m.leader {
			_ = unix.Kill(p.pid, unix.SIGTERM)
			_ = unix.Kill(p.pid, unix.SIGCONT)
		}
	}
}

func (m *marked) kill() {
	signalGroup(m.leader, syscall.SIGKILL)
	for _, p := range m.find() {
		_ = unix.Kill(p.pid, unix.SIGKILL)
	}
}

func (m *marked) empty() bool { return len(m.find()) == 0 }

func (m *marked) next() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.orphans.forget(m.leader)
	m.leader = 0
	clear(m.finder.sessions)
	return nil
}

func (m *marked) clear() error {
	return endAll(m.find, func(left []process) error {
		return fmt.Errorf("%s: processes %v survive SIGKILL", m.id, left)
	})
}

func (m *marked) end() error {
	err := m.clear()
	m.all.orphans.forget(m.leader)
	m.all.orphans.sweep()
	m.all.guard.remove(m.id)
	return err
}

// endAll kills what find lists until it lists nothing.
func endAll(find func() []process, late func(left []process) error) error {
	var left []process
	return until(func() bool {
		left = find()
		for _, p := range left {
			_ = unix.Kill(p.pid, unix.SIGKILL)
		}
		return len(left) == 0
	}, func() error { return late(left) })
}

// finder finds the processes of one attempt. It remembers the sessions that it
// has met, since a process that has wiped its environment can still be in one.
type finder struct {
	entry []byte
	own   int
	// since leaves out what was started before, unread; see process.start.
	since    int
	sessions map[int]bool
	buffer   bytes.Buffer
}

func newFinder(id string) *finder {
	session, err := unix.Getsid(0)
	if err != nil {
		session = -1
	}
	return &finder{entry: []byte(claimVariable + "=" + id), own: session, sessions: make(map[int]bool)}
}

// find returns the living and the zombies among them.
func (f *finder) find() (living, dead []process) {
	all, err := processes()
	if err != nil {
		return nil, nil
	}
	self := os.Getpid()
	found := make(map[int]process)
	for _, p := range all {
		if p.pid == self || p.start < f.since {
			continue
		}
		if f.sessions[p.session] || hasEntry(environOf(p.pid, &f.buffer), f.entry) {
			found[p.pid] = p
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if _, have := found[p.pid]; have || p.pid == self || p.start < f.since {
				continue
			}
			if _, child := found[p.parent]; child {
				found[p.pid] = p
				grown = true
			}
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(found)) {
		p := found[pid]
		if p.session != f.own && p.session != 0 {
			f.sessions[p.session] = true
		}
		if p.zombie {
			dead = append(dead, p)
		} else {
			living = append(living, p)
		}
	}
	return living, dead
}
