package workers

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/presence"
	"switchyard/activities/registry"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workers/node"
)

const (
	// silentBeats is after how many missed heartbeats a registered worker counts as silent.
	silentBeats = 1.5
	// takenMargin is how long after a dead worker counts as offline its name is still requested.
	takenMargin = 5 * time.Second
	// registerPause is the interval between two attempts to register.
	registerPause = 200 * time.Millisecond
	// lockPatience is how long a process that was just killed may still hold its lock.
	lockPatience = time.Second
	// leaveTimeout bounds the request with which a node leaves the fleet.
	leaveTimeout = 3 * time.Second
	// restartTimeout bounds the request with which a node restarts, while the leases of its attempts run.
	restartTimeout = 1500 * time.Millisecond
	// lostPoll is how often a node checks that the server still knows it.
	lostPoll = 250 * time.Millisecond
)

// lockName locks the node's name for this fleet on this machine, so that no other worker with the same state folder can be
// the node while this process lives. If locking is impossible, the node continues without a lock: only the registry then
// keeps a second worker out, and a new worker must wait for a dead one to go offline.
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

// unlock releases the node's name. hasLeft is set if the registry knows that the node has left; otherwise the incarnation
// in the lock file proves to the next worker that this one has ended.
func (n *Node) unlock(hasLeft bool) {
	if n.lock == nil {
		return
	}
	release := n.lock.Release
	if hasLeft || n.lock.Note() == "" {
		release = n.lock.Remove
	}
	if err := release(); err != nil {
		n.cfg.Logger.Warn("cannot release the lock of the node's name", "error", err)
	}
}

// registration returns the registration of the node. replaces is the incarnation that has been proven dead, or "".
func (n *Node) registration(ctx context.Context, replaces string) *historyv1.NodeRegistration {
	s := n.presence.Snapshot(ctx)
	s.Claims = nil // omitted, because each heartbeat reports the current claims
	s.Name, s.Incarnation = n.cfg.Name, n.presence.Incarnation
	registration := &historyv1.NodeRegistration{
		Name: n.cfg.Name, Incarnation: n.presence.Incarnation, Machine: s.GetMachine(), Process: processIdentity(), Replaces: replaces,
		OfflineAfter: durationpb.New(n.cfg.OfflineAfter), Snapshot: s,
	}
	if level := historyv1.ReadableDataLevel(); level > 1 {
		registration.DataLevel = int32(level)
	}
	return registration
}

// join registers the node and returns its record. It waits for conditions that may resolve: a control process that has
// not started, an unreachable server, and a worker of the same name that may be dead. It fails if that worker heartbeats.
func (n *Node) join(ctx context.Context) (*historyv1.NodeRecord, error) {
	reg := registry.New(n.cfg.Client)
	other := rival{offlineAfter: n.cfg.OfflineAfter}
	replaces, quiet := "", false
	if n.lock != nil {
		n.lock.NoteAttempt(n.presence.Incarnation)
	}
	for {
		record, err := reg.Register(ctx, n.registration(ctx, replaces))
		if err == nil {
			n.presence.Registered()
			n.registered = true
			if n.lock != nil {
				n.lock.NoteRegistered(n.presence.Incarnation)
			}
			return record, nil
		}
		n.unanswered = n.unanswered || !registry.IsRefusal(err)
		switch {
		case ctx.Err() != nil:
			return nil, err
		case errors.Is(err, registry.ErrOutdated):
			err = reg.Replace(ctx, n.cfg.Name)
		case errors.Is(err, registry.ErrTaken):
			entry, entryErr := reg.Entry(ctx, n.cfg.Name)
			if entryErr != nil {
				break // removed by now, or unknown
			}
			switch other.observe(entry, time.Now()) {
			case rivalAlive:
				return nil, err
			case rivalSilent:
				// The registered incarnation is dead if its process held the lock.
				if registered := entry.Record.GetRegistration().GetIncarnation(); n.lock != nil && n.lock.IsDead(registered) {
					replaces = registered
				}
			}
		}
		if err != nil && !quiet {
			n.cfg.Logger.Warn("the node is not registered yet", "error", err)
			quiet = true // logged once; the outcome is reported later
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(registerPause):
		}
	}
}

// obey puts the node into the service state that the registry records, and sets the terms that it records.
func (n *Node) obey(record *historyv1.NodeRecord) {
	n.setTerms(record.GetTerms())
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
		record, err := n.join(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			n.cfg.Logger.Error("the node has lost its name", "error", err)
			n.failure = err
			close(n.failed)
			return
		}
		n.obey(record)
		n.cfg.Logger.Info("the node is registered again")
	}
}

// leave reports to the registry that the node has left, unless the end of its heartbeat already does. It returns false if
// this incarnation may still be registered.
func (n *Node) leave() bool {
	if !n.registered {
		n.withdraw()
		return false
	}
	if n.Err() != nil {
		return true
	}
	if n.presence.Left() {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := registry.New(n.cfg.Client).Leave(ctx, n.cfg.Name, n.presence.Incarnation); err != nil {
		n.cfg.Logger.Warn("cannot announce that the node leaves the fleet; it will count as offline later", "error", err)
		return false
	}
	return true
}

// withdraw ends the registration of a node that stops without an answer to its request: it may be registered. What an earlier
// worker has left is then kept for the next one.
func (n *Node) withdraw() {
	switch {
	case n.unanswered:
		ctx, cancel := context.WithTimeout(context.Background(), restartTimeout)
		defer cancel()
		reg, err := registry.New(n.cfg.Client), error(nil)
		if left := n.attempts.LeftEarlier(); n.cfg.KeepOnStop && left.Attempts > 0 {
			err = reg.Restart(ctx, n.cfg.Name, n.restartOf(left))
		} else {
			err = reg.Leave(ctx, n.cfg.Name, n.presence.Incarnation)
		}
		if err != nil && !registry.IsRefusal(err) {
			n.cfg.Logger.Warn("the node may have been registered; if so, it will count as silent", "error", err)
		}
	case n.lock != nil:
		n.lock.NoteRefused()
	}
}

// rival is another worker that holds the requested name. No lock, machine or folder proves it alive or dead; its heartbeats
// do, and the server, which counts it as offline after its time of silence.
type rival struct {
	offlineAfter time.Duration // of this node
	since        time.Time     // when the rival was first seen; zero before that
	incarnation  string
	beat         time.Time // its newest heartbeat at that time
}

// rivalState is what the heartbeats of a rival show.
type rivalState int

const (
	rivalUnclear rivalState = iota
	// rivalAlive means that it has sent a heartbeat since it was first seen, or that the server kept it for longer than its
	// time of silence.
	rivalAlive
	// rivalSilent means that it has not sent the heartbeats that were due.
	rivalSilent
)

// observe compares an entry that was just read with the first one.
func (r *rival) observe(e *registry.Entry, now time.Time) rivalState {
	registered := e.Record.GetRegistration()
	if r.incarnation != registered.GetIncarnation() || r.since.IsZero() {
		r.since, r.incarnation, r.beat = now, registered.GetIncarnation(), e.BeatAt
		return rivalUnclear
	}
	offlineAfter := max(r.offlineAfter, registered.GetOfflineAfter().AsDuration())
	interval := presence.Interval(e.OfflineAfter())
	switch seen := now.Sub(r.since); {
	case e.BeatAt.After(r.beat), seen > offlineAfter+takenMargin:
		return rivalAlive
	case seen > time.Duration(silentBeats*float64(interval)):
		return rivalSilent
	}
	return rivalUnclear
}
