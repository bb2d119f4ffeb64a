package workers

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/registry"
	"switchyard/activities/taskrunner"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// leftPatience is how long a stopping node waits until its executors have left the attempts that the next worker continues.
const leftPatience = 5 * time.Second

// keepsAttempts reports whether the node leaves its attempts to the next worker. A node that has lost its name has no next
// worker.
func (n *Node) keepsAttempts() bool { return n.cfg.KeepOnStop && n.registered && n.Err() == nil }

// keepAttempts makes the drain of the node keep what the next worker can continue.
func (n *Node) keepAttempts() {
	if n.keepsAttempts() {
		n.attempts.KeepAttempts()
	}
}

// restart tells the registry that attempts wait for the next worker of the node. It returns false if the node leaves the
// fleet instead, because it has left nothing that is to be kept. The registry learns it before the heartbeat of the node
// ends. If the registry does not learn it, the node is not known to have left either: it falls silent.
func (n *Node) restart() bool {
	ctx, cancel := context.WithTimeout(context.Background(), leftPatience)
	defer cancel()
	left := n.attempts.AwaitLeft(ctx)
	if !n.keepsAttempts() || left.Attempts == 0 {
		return false
	}
	n.presence.Suspend()
	log := n.cfg.Logger.With("tasks", left.Attempts, "awaitedUntil", n.awaitedUntil(left).Round(time.Second))
	if !left.First.IsZero() {
		log = log.With("firstEndsAt", left.First.Round(time.Second))
	}
	log.Info("tasks run on for the next worker of the node")
	timeout := restartTimeout
	if n.isCutOff() {
		timeout = cutOffTimeout
	}
	call, end := context.WithTimeout(context.Background(), timeout)
	defer end()
	if err := registry.New(n.cfg.Client).Restart(call, n.cfg.Name, n.restartOf(left)); err != nil {
		n.cfg.Logger.Warn("cannot announce that the node restarts; it will count as silent", "error", err)
	}
	return true
}

// awaitedUntil returns until when the next worker is awaited that is to continue what is left.
func (n *Node) awaitedUntil(left taskrunner.Left) time.Time {
	if until := time.Now().Add(n.cfg.OfflineAfter); until.After(left.Last) {
		return until
	}
	return left.Last
}

// restartOf returns the announcement that attempts are left to the next worker of the node.
func (n *Node) restartOf(left taskrunner.Left) *historyv1.NodeRestart {
	restart := &historyv1.NodeRestart{Incarnation: n.presence.Incarnation, Wait: durationpb.New(time.Until(n.awaitedUntil(left))), Kept: int32(left.Attempts)}
	if !left.First.IsZero() {
		restart.First = durationpb.New(time.Until(left.First))
	}
	return restart
}
