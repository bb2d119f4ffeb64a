package workers

import (
	"context"
	"time"

	"switchyard/activities/registry"
	"switchyard/workers/node"
)

// lockLeadership takes this machine's lock for the leader of the fleet's placement queue, or returns nil if another
// process holds it or it cannot be taken. The lock proves nothing about a leader with another state folder, such as one in
// a container, so its file names the epoch of the leader that held it.
func (c ControlConfig) lockLeadership() *node.NameLock {
	lock, err := node.LockName(c.lockDir, nodeFolder(c.Client.Fleet+"/leader", "leader"))
	if err != nil {
		c.Logger.Debug("cannot take this machine's leader lock", "error", err)
		return nil
	}
	return lock
}

// holdLeadership takes the lock for a leader and writes its epoch into the file. release releases the lock.
func (c ControlConfig) holdLeadership(epoch string) (release func()) {
	lock := c.lockLeadership()
	if lock == nil {
		return func() {}
	}
	lock.SetNote(epoch)
	return func() { c.unlockLeadership(lock.Remove) }
}

func (c ControlConfig) unlockLeadership(unlock func() error) {
	if err := unlock(); err != nil {
		c.Logger.Warn("cannot release this machine's leader lock", "error", err)
	}
}

// relieve ends the leadership of a killed process on this machine, so that runs need not wait for the server to miss its
// heartbeats.
func (c ControlConfig) relieve(ctx context.Context) {
	reg := registry.New(c.Client)
	beat, _, err := reg.Leader(ctx)
	if err != nil || beat == nil {
		return
	}
	lock := c.lockLeadership()
	if lock == nil {
		return // the leader is alive
	}
	unlock := lock.Remove
	defer func() { c.unlockLeadership(unlock) }()
	if lock.Note() != beat.GetEpoch() {
		return // the leader has another state folder
	}
	if err := reg.RelieveLeader(ctx, c.Client.Namespace, beat); err != nil {
		c.Logger.Debug("cannot take over from a dead leader", "error", err)
		unlock = lock.Release // with the note, for the next try
		return
	}
	c.Logger.Info("the leader has died on this machine", "leader", beat.GetIdentity(), "since", beat.GetSince().AsTime().Format(time.RFC3339))
}
