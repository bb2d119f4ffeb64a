//go:build !unix

package shell

import (
	"errors"
	"os"
	"syscall"

	"switchyard/activities/executor"
)

// groups know only the program itself: these systems have no process groups to signal.
type groups struct{}

func (groups) mechanism() Mechanism                                           { return Group }
func (groups) enclose(string, *executor.Lease, executor.Limits) (tree, error) { return &group{}, nil }
func (groups) close() error                                                   { return nil }

type group struct{ pid int }

func (g *group) attr() *syscall.SysProcAttr { return nil }
func (g *group) started(pid int)            { g.pid = pid }
func (g *group) terminate()                 { g.kill() }
func (g *group) empty() bool                { return true }
func (g *group) pids() []int                { return nil }
func (g *group) join() string               { return "" }
func (g *group) oomKilled() bool            { return false }
func (g *group) died()                      {}
func (g *group) next() error                { return nil }
func (g *group) clear() error               { return nil }
func (g *group) end() error                 { return nil }

func (g *group) suspend(func() error) error { return errors.ErrUnsupported }
func (g *group) resume() error              { return nil }

func (g *group) kill() {
	if p, err := os.FindProcess(g.pid); err == nil {
		_ = p.Kill()
		_ = p.Release()
	}
}
