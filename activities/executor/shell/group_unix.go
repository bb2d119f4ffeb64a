//go:build unix

package shell

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/poll"
)

// groupFactory tracks each attempt by the process group that its program leads.
type groupFactory struct{}

func (groupFactory) mechanism() Mechanism { return Group }
func (groupFactory) enclose(_ string, e executor.Ending, _ executor.Limits) (tree, error) {
	return &groupTree{stopSignal: stopSignal(e)}, nil
}
func (groupFactory) close() error { return nil }

type groupTree struct {
	leader     int
	stopSignal syscall.Signal
}

func (g *groupTree) attr() *syscall.SysProcAttr { return sessionAttr(false) }
func (g *groupTree) started(pid int)            { g.leader = pid }

// admit starts a program in a process group of its own. The program ends with the attempt only because the attempt
// waits for it.
func (g *groupTree) admit(start func() (*os.Process, error)) (*os.Process, error) { return start() }
func (g *groupTree) dismiss(int)                                                  {}

func (g *groupTree) terminate()      { signalGroup(g.leader, g.stopSignal) }
func (g *groupTree) kill()           { signalGroup(g.leader, syscall.SIGKILL) }
func (g *groupTree) join() string    { return "" }
func (g *groupTree) oomKilled() bool { return false }
func (g *groupTree) noteSIGKILL()    {}

func (g *groupTree) suspend(func() error) error {
	return syscall.Kill(-g.leader, syscall.SIGSTOP)
}

func (g *groupTree) resume() error { return syscall.Kill(-g.leader, syscall.SIGCONT) }

func (g *groupTree) isEmpty() bool {
	return g.leader == 0 || errors.Is(syscall.Kill(-g.leader, 0), syscall.ESRCH)
}

func (g *groupTree) pids() []int {
	if g.leader == 0 {
		return nil
	}
	return []int{g.leader}
}

func (g *groupTree) end() error { return g.clear() }

func (g *groupTree) next() error {
	g.leader = 0
	return nil
}

func (g *groupTree) clear() error {
	return poll.Until(func() bool {
		if g.isEmpty() {
			return true
		}
		g.kill()
		return g.isEmpty()
	}, func() error { return fmt.Errorf("process group %d survives SIGKILL", g.leader) })
}

// stopSignal returns the signal that asks a program to end.
func stopSignal(e executor.Ending) syscall.Signal {
	return cmp.Or(signalNumber(e.Signal), syscall.SIGTERM)
}

// signalNumber returns the signal with a name such as "INT" or "SIGINT", or 0.
func signalNumber(name string) syscall.Signal {
	name = "SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG")
	if name == "SIGRTMIN+3" {
		return 37 // on Linux; systemd shuts down on it
	}
	return unix.SignalNum(name)
}

// signalGroup signals a process group. It also resumes stopped processes, which would not see a signal other than SIGKILL
// otherwise.
func signalGroup(leader int, signal syscall.Signal) {
	if leader == 0 {
		return
	}
	_ = syscall.Kill(-leader, signal)
	if signal != syscall.SIGKILL {
		_ = syscall.Kill(-leader, syscall.SIGCONT)
	}
}
