package workers

import (
	"context"
	"time"

	"switchyard/activities/registry"
	"switchyard/workers/node"
)

// lockOwner takes this machine's lock for the owner of the fleet's placement queue, which
// goes with the process: whoever gets it knows that an owner that has held it is none any
// more. machine is "" where another process has the lock. release gives it back.
func (c ControlConfig) lockOwner() (machine string, release func()) {
	lock, err := node.LockName(c.lockDir, nodeFolder(c.Client.Fleet+"/owner", "owner"))
	if err != nil {
		c.Logger.Debug("this machine's lock for the owner of the placement queue is not to be had", "error", err)
		return "", func() {}
	}
	return machineID(), func() {
		if err := lock.Release(); err != nil {
			c.Logger.Warn("this machine's lock for the owner of the placement queue was not given back", "error", err)
		}
	}
}

// relieve ends the ownership of a process of this machine that was killed, so that no run
// waits until the server has missed its heartbeats.
func (c ControlConfig) relieve(ctx context.Context) {
	reg := registry.New(c.Client)
	beat, _, err := reg.Owner(ctx)
	if err != nil || beat.GetMachine() == "" || beat.GetMachine() != machineID() {
		return
	}
	machine, release := c.lockOwner()
	defer release()
	if machine == "" {
		return // the owner lives
	}
	if err := reg.RelieveOwner(ctx, c.Client.Namespace, beat); err != nil {
		c.Logger.Debug("a dead owner of the placement queue was not relieved", "error", err)
		return
	}
	c.Logger.Info("the owner of the placement queue has died on this machine", "owner", beat.GetIdentity(), "since", beat.GetSince().AsTime().Format(time.RFC3339))
}
