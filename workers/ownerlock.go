package workers

import (
	"context"
	"time"

	"switchyard/activities/registry"
	"switchyard/workers/node"
)

// lockOwner takes this machine's lock for the owner of the fleet's placement queue. The lock is released when its
// process ends, so a process that obtains it knows that an earlier holder has ended. machine is "" if another process
// holds the lock. release releases the lock.
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

// relieve ends the ownership of a killed process on this machine, so that runs need not wait for the server to miss its
// heartbeats.
func (c ControlConfig) relieve(ctx context.Context) {
	reg := registry.New(c.Client)
	beat, _, err := reg.Owner(ctx)
	if err != nil || beat.GetMachine() == "" || beat.GetMachine() != machineID() {
		return
	}
	machine, release := c.lockOwner()
	defer release()
	if machine == "" {
		return // the owner is alive
	}
	if err := reg.RelieveOwner(ctx, c.Client.Namespace, beat); err != nil {
		c.Logger.Debug("a dead owner of the placement queue was not relieved", "error", err)
		return
	}
	c.Logger.Info("the owner of the placement queue has died on this machine", "owner", beat.GetIdentity(), "since", beat.GetSince().AsTime().Format(time.RFC3339))
}
