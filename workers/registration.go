package workers

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/registry"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/node"
)

const (
	// takenMargin is how long after a dead worker counts as offline its name is still requested.
	takenMargin = 5 * time.Second
	// registerPause is the interval between two attempts to register.
	registerPause = 200 * time.Millisecond
	// lockPatience is how long a process that was just killed may still hold its lock.
	lockPatience = time.Second
	// leaveTimeout bounds the request with which a node leaves the fleet.
	leaveTimeout = 3 * time.Second
	// lostPoll is how often a node checks that the server still knows it.
	lostPoll = 250 * time.Millisecond
)

// lockName locks the node's name for this fleet on this machine, so that no other local worker can be the node while
// this process lives. If locking is impossible, the node continues without a lock: only the registry then keeps a
// second worker out, and a new worker must wait for a dead one to go offline.
func (n *Node) lockName(ctx context.Context) error {
	lockName := nodeFolder(n.cfg.Client.Fleet, n.cfg.Name)
	until := time.Now().Add(lockPatience)
	for {
		lock, err := node.LockName(n.cfg.lockDir, lockName)
		held, taken := errors.AsType[*node.HeldNameError](err)
		switch {
		case err == nil:
			n.lock = lock
			return nil
		case !taken:
			n.cfg.Logger.Warn("the name of the node cannot be locked on this machine", "error", err)
			return nil
		case time.Now().After(until):
			held.Name = n.cfg.Name
			return held
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(registerPause):
		}
	}
}

// registration returns the registration of the node.
func (n *Node) registration(ctx context.Context) *v1.NodeRegistration {
	s := n.presence.Snapshot(ctx)
	s.Claims = nil // omitted, because each heartbeat reports the current claims
	s.Name, s.Incarnation = n.cfg.Name, n.presence.Incarnation
	return &v1.NodeRegistration{
		Name: n.cfg.Name, Incarnation: n.presence.Incarnation, Machine: s.GetMachine(), Exclusive: n.lock != nil,
		OfflineAfter: durationpb.New(n.cfg.OfflineAfter), Snapshot: s,
	}
}

// join registers the node. It waits for conditions that may resolve: a control process that has not started, an
// unreachable server, and a worker of the same name that may be dead. It fails if that worker heartbeats.
func (n *Node) join(ctx context.Context) error {
	reg := registry.New(n.cfg.Client)
	var taken rival
	quiet := false
	for {
		record, err := reg.Register(ctx, n.registration(ctx))
		switch {
		case err == nil:
			n.presence.Registered()
			n.registered = true
			n.obey(record)
			return nil
		case ctx.Err() != nil:
			return err
		case errors.Is(err, registry.ErrOutdated):
			err = reg.Replace(ctx, n.cfg.Name)
		case errors.Is(err, registry.ErrTaken):
			if taken.alive(ctx, reg, n.cfg.Name, n.cfg.OfflineAfter) {
				return err
			}
		}
		if err != nil && !quiet {
			n.cfg.Logger.Warn("the node is not registered yet", "error", err)
			quiet = true // logged once; the outcome is reported later
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(registerPause):
		}
	}
}

// obey puts the node into the service state that the registry records.
func (n *Node) obey(record *v1.NodeRecord) {
	if !n.leaving.Load() {
		n.attempts.Obey(record.GetDrain())
	}
}

// stay registers the node again, until ctx ends, whenever the server has lost it, such as after a long network outage.
// Running attempts continue.
func (n *Node) stay(ctx context.Context) {
	ticker := time.NewTicker(lostPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := n.serveGPUs(); err != nil {
			n.cfg.Logger.Error("the node takes no tasks that need a GPU", "error", err)
		}
		if !n.presence.Lost(n.cfg.OfflineAfter) {
			continue
		}
		n.cfg.Logger.Warn("the fleet no longer lists this node; registering it again")
		err := n.join(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			n.cfg.Logger.Error("the node has lost its name", "error", err)
			n.failure = err
			close(n.failed)
			return
		}
		n.cfg.Logger.Info("the node is registered again")
	}
}

// leave reports to the registry that the node has left, unless the end of its heartbeat already does.
func (n *Node) leave() {
	if !n.registered || n.presence.Left() || n.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := registry.New(n.cfg.Client).Leave(ctx, n.cfg.Name, n.presence.Incarnation); err != nil {
		n.cfg.Logger.Warn("cannot announce that the node leaves the fleet; it will count as offline later", "error", err)
	}
}

// rival is another worker that holds the requested name.
type rival struct {
	since time.Time // when the name was first requested; zero before that
	beat  time.Time // its newest heartbeat at that time
}

// alive reports whether the rival heartbeats, or still exists after the time in which a dead one would be offline.
func (r *rival) alive(ctx context.Context, reg *registry.Registry, name string, offlineAfter time.Duration) bool {
	e, err := reg.Entry(ctx, name)
	if err != nil {
		return false // gone, or unknown
	}
	if r.since.IsZero() {
		r.since, r.beat = time.Now(), e.BeatAt
		return false
	}
	offlineAfter = max(offlineAfter, e.Record.GetRegistration().GetOfflineAfter().AsDuration())
	return e.BeatAt.After(r.beat) || time.Since(r.since) > offlineAfter+takenMargin
}
