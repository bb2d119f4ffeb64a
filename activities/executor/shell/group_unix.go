//go:build unix

package shell

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"switchyard/activities/executor"
)

// killWait is how long processes may take to be gone after SIGKILL. One that
// hangs in the kernel, on a dead network file system for instance, may take longer.
const killWait = 10 * time.Second

// groups hold each attempt in the process group that its program leads.
type groups struct{}

func (groups) mechanism() Mechanism                                           { return Group }
func (groups) enclose(string, *executor.Lease, executor.Limits) (tree, error) { return &group{}, nil }
func (groups) close() error                                                   { return nil }

type group struct{ leader int }

func (g *group) attr() *syscall.SysProcAttr { return sessionAttr() }
func (g *group) started(pid int)            { g.leader = pid }
func (g *group) terminate()                 { signalGroup(g.leader, syscall.SIGTERM) }
func (g *group) kill()                      { signalGroup(g.leader, syscall.SIGKILL) }
func (g *group) join() string               { return "" }
func (g *group) oomKilled() bool            { return false }
func (g *group) died()                      {}

func (g *group) suspend(func() error) error {
	return syscall.Kill(-g.leader, syscall.SIGSTOP)
}

func (g *group) resume() error { return syscall.Kill(-g.leader, syscall.SIGCONT) }

func (g *group) empty() bool {
	return g.leader == 0 || errors.Is(syscall.Kill(-g.leader, 0), syscall.ESRCH)
}

func (g *group) pids() []int {
	if g.leader == 0 {
		return nil
	}
	return []int{g.leader}
}

func (g *group) end() error { return g.clear() }

func (g *group) next() error {
	g.leader = 0
	return nil
}

func (g *group) clear() error {
	return until(func() bool {
		if g.empty() {
			return true
		}
		g.kill()
		return g.empty()
	}, func() error { return fmt.Errorf("process group %d survives SIGKILL", g.leader) })
}

// signalGroup signals a process group; it wakes the stopped ones, or they
// would not see a SIGTERM.
func signalGroup(leader int, signal syscall.Signal) {
	if leader == 0 {
		return
	}
	_ = syscall.Kill(-leader, signal)
	if signal == syscall.SIGTERM {
		_ = syscall.Kill(-leader, syscall.SIGCONT)
	}
}

// until repeats done, with growing pauses, until it is true or killWait is over.
func until(done func() bool, late func() error) error {
	deadline := time.Now().Add(killWait)
	for pause := 50 * time.Microsecond; !done(); pause = min(2*pause, watch) {
		if time.Now().After(deadline) {
			return late()
		}
		time.Sleep(pause)
	}
	return nil
}
