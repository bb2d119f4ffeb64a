package shell

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/procfs"
)

// markerFactory finds the processes of attempts in /proc.
type markerFactory struct {
	guard   *watchdog
	orphans *procfs.OrphanReaper
	// leaves reports that attempts can be left to a later worker.
	leaves bool
}

func newMarks(guard *watchdog, leaves bool) (*markerFactory, error) {
	if _, err := procfs.List(); err != nil {
		return nil, err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	return &markerFactory{guard: guard, orphans: procfs.Orphans.Open(), leaves: leaves}, nil
}

func (m *markerFactory) mechanism() Mechanism { return EnvMarker }

// close leaves the process a subreaper, since another Executor may rely on it.
func (m *markerFactory) close() error {
	m.orphans.Close()
	return nil
}

func (m *markerFactory) enclose(id string, e executor.Ending, _ executor.Limits) (tree, error) {
	if err := m.guard.add(id, e); err != nil {
		return nil, err
	}
	return &markerTree{all: m, id: id, stopSignal: stopSignal(e), finder: procfs.NewSearch(id), admitted: map[int]bool{}}, nil
}

// markerTree is the process tree of one attempt.
type markerTree struct {
	all    *markerFactory
	id     string
	leader int
	// stopSignal asks the processes to end.
	stopSignal syscall.Signal

	mu     sync.Mutex
	finder *procfs.Search
	// admitted holds the programs beside the leader that have not been waited
	// for yet.
	admitted map[int]bool
}

func (m *markerTree) attr() *syscall.SysProcAttr { return sessionAttr(m.all.leaves) }
func (m *markerTree) join() string               { return "" }
func (m *markerTree) oomKilled() bool            { return false }
func (m *markerTree) noteSIGKILL()               {}

func (m *markerTree) started(pid int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leader = pid
	m.finder.Sessions[pid] = true
	if p, err := procfs.Read(strconv.Itoa(pid)); err == nil {
		m.finder.Since = p.Start
	}
	m.all.orphans.Exclude(pid)
}

func (m *markerTree) admit(start func() (*os.Process, error)) (*os.Process, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	process, err := start()
	if err != nil {
		return nil, err
	}
	// The program may clear its environment, but it stays in its session.
	m.admitted[process.Pid], m.finder.Sessions[process.Pid] = true, true
	m.all.orphans.Exclude(process.Pid)
	return process, nil
}

func (m *markerTree) dismiss(pid int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.admitted, pid)
	m.all.orphans.Include(pid)
}

// find lists the living processes. It reaps dead ones that this process has
// adopted, except the leader and admitted programs.
func (m *markerTree) find() []procfs.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leader == 0 {
		return nil
	}
	living, dead := m.finder.Find()
	for _, p := range dead {
		if p.PID != m.leader && !m.admitted[p.PID] {
			procfs.ReapChild(p.PID)
		}
	}
	return living
}

func (m *markerTree) pids() []int {
	var pids []int
	for _, p := range m.find() {
		pids = append(pids, p.PID)
	}
	return pids
}

func (m *markerTree) terminate() {
	m.all.guard.noteStopping(m.id)
	signalGroup(m.leader, m.stopSignal)
	for _, p := range m.find() {
		if p.Group != m.leader {
			_ = unix.Kill(p.PID, m.stopSignal)
			_ = unix.Kill(p.PID, unix.SIGCONT)
		}
	}
}

func (m *markerTree) kill() {
	signalGroup(m.leader, syscall.SIGKILL)
	for _, p := range m.find() {
		_ = unix.Kill(p.PID, unix.SIGKILL)
	}
}

func (m *markerTree) isEmpty() bool { return len(m.find()) == 0 }

func (m *markerTree) next() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.orphans.Include(m.leader)
	m.leader = 0
	clear(m.finder.Sessions)
	return nil
}

func (m *markerTree) clear() error {
	return procfs.KillAll(m.find, func(left []procfs.Process) error {
		return fmt.Errorf("%s: processes %v survive SIGKILL", m.id, left)
	})
}

func (m *markerTree) end() error {
	err := m.clear()
	m.all.orphans.Include(m.leader)
	m.all.orphans.Reap()
	m.all.guard.remove(m.id)
	return err
}
