package workers

import (
	"context"
	"time"

	"switchyard/activities/registry"
	"switchyard/workers/node"
)

// lockForLeader takes this machine's lock for the leader of the fleet's placement queue. The lock is released when its
// process ends, so a process that obtains it knows that an earlier holder has ended. machine is "" if another process
// holds the lock. release releases the lock.
func (c ControlConfig) lockForLeader() (machine string, release func()) {
	lock, err := node.LockName(c.lockDir, nodeFolder(c.Client.Fleet+"/leader", "leader"))
	if err != nil {
		c.Logger.Debug("cannot take this machine's leader lock", "error", err)
		return "", func() {}
	}
	return machineID(), func() {
		if err := lock.Release(); err != nil {
			c.Logger.Warn("cannot release this machine's leader lock", "error", err)
		}
	}
}

// relieve ends the leadership of a killed process on this machine, so that runs need not wait for the server to miss its
// heartbeats.
func (c ControlConfig) relieve(ctx context.Context) {
	reg := registry.New(c.Client)
	beat, _, err := reg.Leader(ctx)
	if err != nil || beat.GetMachine() == "" || beat.GetMachine() != machineID() {
		return
	}
	machine, release := c.lockForLeader()
	defer release()
	if machine == "" {
		return // the leader is alive
	}
	if err := reg.RelieveLeader(ctx, c.Client.Namespace, beat); err != nil {
		c.Logger.Debug("cannot take over from a dead leader", "error", err)
		return
	}
	c.Logger.Info("the leader has died on this machine", "leader", beat.GetIdentity(), "since", beat.GetSince().AsTime().Format(time.RFC3339))
}
