package shell

import (
	"errors"
	"fmt"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/forker"
)

// processTree is the process tree of an attempt or a batch, with what enforces its limits.
type processTree struct {
	tree
	// bound is nil if there are no limits or the tree enforces them itself.
	bound *bound
	// forker starts programs inside the limits.
	forker *forker.Forker
	// box is the sandbox that programs run in, or nil.
	box *box
}

// enclose creates the process tree of an attempt. Without a sandbox only memory is limited. If the
// limit cannot be enforced, the attempt runs without it and its log gets a notice.
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
	n.bound, err = e.bounds.acquire(limits, sandbox)
	if err != nil && sandbox {
		return nil, errors.Join(fmt.Errorf("sandbox %s: %w", a.ID, err), n.box.release())
	}
	if err != nil {
		limits = executor.Limits{}
		e.reportUnlimited(a, err)
	}
	if f := n.bound.forker(); f != nil {
		n.forker = f
	}
	if n.tree, err = e.trees.enclose(a.ID, a.Ending, limits); err != nil {
		return nil, errors.Join(fmt.Errorf("enclose %s: %w", a.ID, err), n.bound.release(), n.box.release())
	}
	return n, nil
}

// reportUnlimited reports that the memory limit of an attempt is not enforced.
func (e *Executor) reportUnlimited(a executor.Attempt, why error) {
	e.warn.Do(func() { e.logger.Warn("memory limits of shell tasks are not enforced here", "error", why) })
	if a.Notify != nil {
		a.Notify(fmt.Sprintf("the memory limit of %d MiB is not enforced on this node: %v", a.Limits.Memory>>20, why))
	}
}

func (n *processTree) oomKilled() bool { return n.tree.oomKilled() || n.bound.oomKilled() }

func (n *processTree) next() error {
	n.bound.resetOOMKills()
	return n.tree.next()
}

// end ends the tree. It releases nothing that a surviving process still uses.
func (n *processTree) end() error {
	if err := n.tree.end(); err != nil {
		return err
	}
	return errors.Join(n.bound.release(), n.box.release())
}
