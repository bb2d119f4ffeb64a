package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/executor"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// A worker that stops hands its lasting attempts over to the next worker of its node. A worker that is about to be started
// again hands over its other attempts, too, if their keeper enforces their leases meanwhile:
//
//	waiting, or of a remote type ──▶ handed back at once, as by any drain
//	a keeper can keep it ──────────▶ runs on while the others drain, then left: Execute has no answer, the log is suspended,
//	                                 and the recovery file stays
//	other ─────────────────────────▶ may finish until the deadline of the drain, then handed back
//
// What an attempt is does not change its fate any more once its program has ended or is being ended: its end is recorded
// and reported before the worker stops. An attempt without a program yet is among the others, but kept as soon as its
// program runs. The next worker continues a left attempt as it would after a crash (see recovery.go). An attempt of a type that does
// not survive a crash gets its recovery file when it is left.

// whyNotKept returns why a drain does not leave an attempt to the next worker, or "" if the drain does so once KeepAttempts has
// been called.
func (a *attempt) whyNotKept() string {
	n, taskType := a.node, a.req.GetType()
	unkept := fmt.Sprintf("it has no keeper (type %s)", taskType)
	switch {
	case len(a.req.GetBatch()) > 0:
		return "it is a batch of instances"
	case n.adopter(taskType) == nil && n.State.Problem != nil && n.capabilities(taskType).Leave != nil:
		return n.State.Problem.Error()
	case n.adopter(taskType) == nil || a.lasts():
		return unkept
	case a.ending() != nil:
		return "it is ending"
	case a.progress.isWaiting():
		return "its program has not started"
	case n.leaver(taskType) != nil:
		err := n.leaver(taskType).CanLeave(attemptID(a.req, &a.members[0]))
		switch {
		case err == nil:
		case err != executor.ErrNotRunning:
			return err.Error()
		case !a.recoveryFile.isWritten():
			return "it is ending"
		} // else this worker has not taken it over from the earlier one
		if a.unkept != nil {
			return a.unkept.Error()
		}
	case !a.recoveryFile.isWritten():
		return "it has no recovery file"
	case !n.State.guard(n.Logger):
		return unkept
	}
	return ""
}

// outlivesDrain reports whether a drain neither ends the attempt nor waits for it. mu is held.
func (s *attempts) outlivesDrain(a *attempt) bool {
	return a.isLasting() || s.keeps && a.whyNotKept() == ""
}

// KeepAttempts makes drains keep the attempts that have a keeper for the next worker of the node. LetGo then leaves them.
func (n *Node) KeepAttempts() {
	s := &n.attempts
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keeps {
		return
	}
	s.keeps = true
	for a := range s.live {
		// An attempt that cannot be left, because the disk is full for example, is to learn it while it may still drain.
		if a.whyNotKept() == "" {
			a.unkept = a.writeNote()
		}
		if why := a.whyNotKept(); why != "" && a.started && !a.isLasting() && !a.isRemote() {
			n.Logger.Info("a task is not kept for the next worker: it drains", "run", a.req.GetRunId(), "task", a.members[0].name, "reason", why)
		}
	}
}

// LetGo leaves the lasting and the kept attempts, including those that become lasting later, to the next worker of the
// node, because this one stops.
func (n *Node) LetGo(reason string) {
	s := &n.attempts
	s.mu.Lock()
	s.leaving = letGo{drained{reason}}
	var ended []*attempt
	for a := range s.live {
		switch {
		case !s.outlivesDrain(a):
		case a.attendance.isOver():
			ended = append(ended, a)
		default:
			s.handOver(a)
		}
	}
	s.mu.Unlock()
	for _, a := range ended {
		if a.attendance.isUnattended() { // its result is recorded if it was a success
			s.leave(a)
		}
	}
}

// handOver makes an attempt end here and continue under the next worker. mu is held.
func (s *attempts) handOver(a *attempt) {
	if err := a.writeNote(); err != nil {
		a.node.Logger.Warn("a task is not left to the next worker", "run", a.req.GetRunId(), "task", a.members[0].name, "error", err)
		a.stop(s.drain.cause)
		return
	}
	if s.left == nil {
		s.left = map[attemptKey]*attempt{}
	}
	s.left[a.key] = a
	a.stop(s.leaving)
}

// writeNote writes the recovery file of a running attempt that has none yet.
func (a *attempt) writeNote() error {
	if a.isLasting() || a.recoveryFile.isWritten() {
		return nil
	}
	return a.note()
}

// letGo is the cause with which a node leaves an attempt running for another node or a later worker.
type letGo struct{ why error }

// Error returns the message.
func (l letGo) Error() string { return l.why.Error() }

// Unwrap returns the underlying cause and executor.ErrLetGo.
func (l letGo) Unwrap() []error { return []error{l.why, executor.ErrLetGo} }

// lastBeatTimeout bounds the last heartbeat of an attempt that is left to the next worker, while its lease runs.
const lastBeatTimeout = time.Second

// beatLast ends the heartbeats of an attempt that is left to the next worker with one more, from which its lease counts. The
// next worker raises the time-out of its activity.
func (h *heartbeats) beatLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastBeatTimeout)
	defer cancel()
	h.silence()
	h.growth.limit = 0
	h.progress.advance(func(e *historyv1.ExecuteProgress) {
		e.Left = true
		if h.lease.KillAt() != executor.Never {
			e.LeftUntil = timestamppb.New(time.Now().Add(h.lease.Length()))
		}
	})
	_ = h.beat(ctx) // without an answer, the lease counts from an earlier one
}

// isLetGo reports whether an attempt that ends for a cause is left to a later worker of its node.
func (a *attempt) isLetGo(cause error) bool {
	_, stops := errors.AsType[drained](cause)
	return errors.Is(cause, executor.ErrLetGo) || stops && a.lasting.hasBegun()
}

// Left is what a worker has left running for the next worker of its node.
type Left struct {
	// Attempts counts the attempts, including lasting ones.
	Attempts int
	// First and Last are when the first and the last lease of these attempts is over, and the keeper ends the attempt. Both
	// are zero if the attempts have no leases.
	First, Last time.Time
}

// AwaitLeft returns what the node has left to the next worker since LetGo, once all of it is left or ctx has ended.
func (n *Node) AwaitLeft(ctx context.Context) Left {
	s := &n.attempts
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.left))
	s.mu.Unlock()
	for _, a := range all {
		await(ctx, a.attendance.done)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	left := Left{Attempts: len(s.left)}
	for _, a := range s.left {
		if end, ok := a.recoveryFile.leaseEnd(); ok {
			left.addLease(end)
		}
	}
	return left
}

// addLease adds the end of the lease of an attempt.
func (l *Left) addLease(end time.Time) {
	if l.First.IsZero() || end.Before(l.First) {
		l.First = end
	}
	if end.After(l.Last) {
		l.Last = end
	}
}

// LeftEarlier returns what earlier workers of the node have left, and changes nothing of it. It is for a node that has not called
// Recover.
func (n *Node) LeftEarlier() (left Left) {
	entries, _ := os.ReadDir(n.State.Dir) // without a folder, nothing is left
	for _, entry := range entries {
		path := filepath.Join(n.State.Dir, entry.Name())
		if filepath.Ext(path) != recoverySuffix {
			continue
		}
		l, err := readOrphan(path)
		if err != nil {
			continue
		}
		left.Attempts++
		if !l.state.Lasting {
			left.addLease(l.endAt())
		}
	}
	return left
}

// findLeft returns the attempt with a key that this worker leaves to the next one, or nil.
func (s *attempts) findLeft(key attemptKey) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left[key]
}

// endHere records that an attempt has ended under this worker although it was to be handed over.
func (s *attempts) endHere(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.left, a.key)
}
