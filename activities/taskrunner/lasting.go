package taskrunner

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"switchyard/activities/executor"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// An attempt of a lasting type runs until it is stopped, on the node where it began:
//
//	spawned ──▶ a beat that says so is acknowledged ──▶ lasting ──▶ stopped, killed, out of time, or ended by itself
//	                                                     │   ▲
//	          activity gone, for the server or by Detach │   │ Execute with Adopt
//	                                                     ▼   │
//	                                          unattended, without an end ──▶ its run does not wait for it: ended
//
// Until the server knows that the program has started, the run may place the task again, and the attempt has a lease like
// any other. From then on nothing places the task again, and the lease never ends. A worker that stops lets go of a
// lasting attempt: the attempt has no answer yet, its recovery file stays, and a later worker of the node reattaches it.
// A drain neither ends the attempt nor waits for it.

const (
	// defaultWantedInterval is the approximate time between two queries of the run of an unattended attempt, if the node
	// does not set one. firstWanted is the time until the first query.
	defaultWantedInterval, firstWanted = time.Minute, 2 * time.Second
	// wantedTimeout bounds one query.
	wantedTimeout = 10 * time.Second
)

var (
	// errLetGo is the result of Execute for an attempt that continues without its worker. The SDK then reports nothing to
	// the server.
	errLetGo = activity.ErrResultPending
	// errUnwanted is the cause of an unattended attempt's end if its run does not wait for it.
	errUnwanted = errors.New("its run does not wait for the attempt any more")
)

// lastingState is whether neither a lease nor a drain ends an attempt any more. mu is held while that begins, so that the
// recovery file and the lease change together for others.
type lastingState struct {
	mu    sync.Mutex
	begun atomic.Bool
}

// begin makes the attempt lasting if lift does, unless it is lasting or ending already.
func (l *lastingState) begin(ending func() error, lift func() bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun.Load() || ending() != nil {
		return false
	}
	l.begun.Store(lift())
	return true
}

// hasBegun reports whether the attempt is lasting. It waits while that is being decided.
func (l *lastingState) hasBegun() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun.Load()
}

// lasts reports whether the attempt is of a lasting type. Unlike isLasting, it is true from the beginning.
func (a *attempt) lasts() bool { return v1.Lasts(a.req.GetType()) }

// isLasting reports whether neither a lease nor a drain ends the attempt any more.
func (a *attempt) isLasting() bool { return a.lasting.begun.Load() }

// beginLasting makes an attempt of a lasting type independent of its lease, because the server knows that its program has
// started.
func (a *attempt) beginLasting() {
	began := a.lasting.begin(a.ending, func() bool {
		a.recoveryFile.update(func(k *recoveryState) { k.Lasting = true })
		return a.beats.lease.Lift()
	})
	if began {
		a.node.attempts.settle()
	}
}

// superviseUnattended asks the run of an unattended attempt from time to time whether it waits for the attempt, and ends
// the attempt if not. It returns when the attempt has been answered or removed.
func (a *attempt) superviseUnattended(ctx context.Context) {
	interval := cmp.Or(a.node.Timing.WantedInterval, defaultWantedInterval)
	wait := interval
	for {
		select {
		case <-a.attendance.fetched:
			return
		case <-a.attendance.unattended:
			wait = min(firstWanted, interval)
			select {
			case <-a.attendance.fetched:
				return
			case <-time.After(jittered(wait)):
			}
		case <-time.After(jittered(wait)):
		}
		wait = interval
		if !a.attendance.isUnattended() || a.ending() != nil && !a.attendance.isOver() {
			continue
		}
		wanted, err := a.node.isWanted(ctx, identityOf(a.node, a.req, &a.members[0]))
		switch {
		case err != nil:
			a.node.Logger.Debug("it is not known whether a run waits for an attempt", "run", a.req.GetRunId(), "task", a.members[0].name, "error", err)
		case !wanted && a.attendance.isUnattended():
			a.node.Logger.Info("an attempt ends: its run does not wait for it", "run", a.req.GetRunId(), "task", a.members[0].name)
			a.stop(errUnwanted)
			await(ctx, a.attendance.done)
			a.node.attempts.leave(a)
		}
	}
}

// jittered returns a random duration between d/2 and 3d/2, so that the attempts of a node do not query at the same time.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// isWanted reports whether the run of an attempt waits for this dispatch.
func (n *Node) isWanted(ctx context.Context, id executor.Identity) (bool, error) {
	if n.Wanted == nil {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, wantedTimeout)
	defer cancel()
	return n.Wanted(ctx, id)
}

// identityOf returns the identity of a member's attempt.
func identityOf(n *Node, req *historyv1.ExecuteRequest, m *member) executor.Identity {
	return executor.Identity{
		Run: req.GetRunId(), Chain: req.GetChain(), Task: req.GetTask(), Node: n.Name, Fleet: n.Fleet,
		Generation: req.GetGeneration(), PutBacks: req.GetRequeues(), Index: m.index, Attempt: m.attempt, Claim: m.claim,
	}
}

// lastingContext returns the context for Run of an attempt of a lasting type. It ends when ctx ends. Its cause is
// executor.ErrLetGo if the worker stops and the attempt is lasting. The caller must call cancel.
func (a *attempt) lastingContext(ctx context.Context) (_ context.Context, cancel func()) {
	own, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	unlink := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if a.isLetGo(cause) && a.recoveryFile.isWritten() {
			cause = letGo{cause}
		}
		stop(cause)
	})
	return own, func() {
		unlink()
		stop(nil)
	}
}

// letGoOf reports whether Run has left an attempt running. If so, it keeps what a later worker needs.
func (w *work) letGoOf(runCtx context.Context, r executor.Result, err error) bool {
	if !errors.Is(context.Cause(runCtx), executor.ErrLetGo) || !r.Stopped && err == nil {
		return false
	}
	w.attempt.beats.beatLast(context.WithoutCancel(runCtx))
	w.leave()
	return true
}

// leave keeps what a later worker needs to continue the attempt.
func (w *work) leave() {
	w.ws = nil
	w.attempt.recoveryFile.leave()
}
