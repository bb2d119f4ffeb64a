//go:build !unix

package shell

import (
	"errors"
	"os"
	"syscall"

	"switchyard/activities/executor"
)

// batch returns nil: attempts that share pipes need Unix.
func (*Executor) batch() func(string, *executor.Lease) (executor.Batch, error) { return nil }

// groupFactory tracks only the program itself: these systems have no process groups to signal.
type groupFactory struct{}

func (groupFactory) mechanism() Mechanism { return Group }
func (groupFactory) enclose(string, executor.Ending, executor.Limits) (tree, error) {
	return &groupTree{}, nil
}
func (groupFactory) close() error { return nil }

type groupTree struct{ pid int }

func (g *groupTree) attr() *syscall.SysProcAttr { return nil }
func (g *groupTree) started(pid int)            { g.pid = pid }
func (g *groupTree) dismiss(int)                {}
func (g *groupTree) terminate()                 { g.kill() }
func (g *groupTree) isEmpty() bool              { return true }
func (g *groupTree) pids() []int                { return nil }
func (g *groupTree) join() string               { return "" }
func (g *groupTree) oomKilled() bool            { return false }
func (g *groupTree) noteSIGKILL()               {}
func (g *groupTree) next() error                { return nil }
func (g *groupTree) clear() error               { return nil }
func (g *groupTree) end() error                 { return nil }

func (g *groupTree) admit(start func() (*os.Process, error)) (*os.Process, error) { return start() }

func (g *groupTree) suspend(func() error) error { return errors.ErrUnsupported }
func (g *groupTree) resume() error              { return nil }

func (g *groupTree) kill() {
	if p, err := os.FindProcess(g.pid); err == nil {
		_ = p.Kill()
		_ = p.Release()
	}
}
