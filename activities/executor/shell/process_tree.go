package shell

import (
	"errors"
	"fmt"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/forker"
)

// processTree is the tree of an attempt, or of a batch, with what keeps it within limits.
type processTree struct {
	tree
	// bound is nil when there are no limits, or the tree has them itself.
	bound *bound
	// forker starts programs inside.
	forker *forker.Forker
	// box is nil unless programs run in a sandbox.
	box *box
}

// enclose makes the process tree of an attempt. Without a sandbox only the memory is
// limited, and where that cannot be done the attempt runs without a limit and with a notice.
func (e *Executor) enclose(a executor.Attempt, sandbox bool) (n *processTree, err error) {
	limits := a.Limits
	if !sandbox {
		limits = executor.Limits{Memory: limits.Memory}
	}
	n = &processTree{forker: e.forker}
	if sandbox {
		if n.box, err = e.newBox(); err != nil {
			return nil, fmt.Errorf("sandbox %s: %w", a.ID, err)
		}
	}
	n.bound, err = e.bounds.take(limits, sandbox)
	if err != nil && sandbox {
		return nil, errors.Join(fmt.Errorf("sandbox %s: %w", a.ID, err), n.box.release())
	}
	if err != nil {
		limits = executor.Limits{}
		e.unlimited(a, err)
	}
	if f := n.bound.forker(); f != nil {
		n.forker = f
	}
	if n.tree, err = e.trees.enclose(a.ID, a.Lease, limits); err != nil {
		return nil, errors.Join(fmt.Errorf("enclose %s: %w", a.ID, err), n.bound.release(), n.box.release())
	}
	return n, nil
}

// unlimited says that the memory of an attempt has no limit.
func (e *Executor) unlimited(a executor.Attempt, why error) {
	e.warn.Do(func() { e.logger.Warn("memory limits of shell tasks are not enforced here", "error", why) })
	if a.Notify != nil {
		a.Notify(fmt.Sprintf("the memory limit of %d MiB is not enforced on this node: %v", a.Limits.Memory>>20, why))
	}
}

func (n *processTree) oomKilled() bool { return n.tree.oomKilled() || n.bound.oomKilled() }

func (n *processTree) next() error {
	n.bound.begin()
	return n.tree.next()
}

// end gives nothing back that a process has which survives it.
func (n *processTree) end() error {
	if err := n.tree.end(); err != nil {
		return err
	}
	return errors.Join(n.bound.release(), n.box.release())
}
