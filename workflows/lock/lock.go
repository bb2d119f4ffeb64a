package lock

import (
	"cmp"
	"time"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
	"switchyard/workflows/pending"
)

// Locker is the workflow Lock with its settings. A zero field means its default.
type Locker struct {
	// Idle is how long a lock without a holder and a waiter stays open; default 1 minute.
	Idle time.Duration
	// LookEvery is the time between two checks whether the holders still exist, while others wait; default 10 s.
	LookEvery time.Duration
	// HistoryEvents is the history length after which the lock continues as new; default 5,000.
	HistoryEvents int
}

// Lock runs the single writer of a lock: a mutex, a semaphore, or the run slots of a workflow. It receives requests by the signal
// `ask` and answers by the signal `granted` to the requesting workflow. It stays open while the lock has a holder or a waiter,
// and a little longer.
//
// A holder that has closed without releasing its places, for example because it was terminated, is detected while others wait
// for them. It keeps its places while one of its attempts may still run.
func (l Locker) Lock(ctx workflow.Context, in *historyv1.LockInput) error {
	// Ending the workflow would hand out its places twice.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	k := &lock{
		Locker: Locker{
			Idle:          cmp.Or(l.Idle, time.Minute),
			LookEvery:     cmp.Or(l.LookEvery, 10*time.Second),
			HistoryEvents: cmp.Or(l.HistoryEvents, 5000),
		},
		ctx: ctx, name: in.GetName(), asked: workflow.GetSignalChannel(ctx, names.AskSignal),
		table: table{held: in.GetHeld(), waiting: in.GetWaiting(), replies: in.GetAnswers()},
		busy:  workflow.Now(ctx), checkedAt: workflow.Now(ctx),
	}
	for {
		k.receive()
		if k.pending.IsEmpty() {
			switch {
			case k.tooLong():
				return workflow.NewContinueAsNewError(ctx, names.LockWorkflow,
					&historyv1.LockInput{Name: k.name, Held: k.table.held, Waiting: k.table.waiting, Answers: k.table.replies})
			case k.table.empty() && len(k.table.replies) == 0 && workflow.Now(ctx).Sub(k.busy) >= k.Idle:
				return nil
			}
		}
		if !k.tooLong() {
			k.answer()
			k.checkHolders()
			k.wake()
		}
		// The only error is a cancelled context, and ctx is never cancelled.
		_ = workflow.Await(ctx, k.hasNews)
	}
}

// endingLook is the time between two checks while an attempt of a closed holder may still run.
const endingLook = time.Second

// lock is the state of a workflow Lock.
type lock struct {
	Locker
	ctx     workflow.Context
	name    string
	asked   workflow.ReceiveChannel
	table   table
	pending pending.Set
	// These timers are nil while they do not run. They are never cancelled, so that a lock that changes hands often creates few
	// of them.
	idle, next workflow.Future
	isChecking bool
	busy       time.Time // when the lock last had a holder or a waiter
	checkedAt  time.Time // when the holders were last checked
}

// tooLong reports whether the history is so long that the lock continues as new as soon as nothing is in flight. Later
// decisions are left to the next execution.
func (k *lock) tooLong() bool {
	info := workflow.GetInfo(k.ctx)
	return info.GetCurrentHistoryLength() >= k.HistoryEvents || info.GetContinueAsNewSuggested()
}

func ready(f workflow.Future) bool { return f != nil && f.IsReady() }

func (k *lock) hasNews() bool {
	if k.asked.Len() > 0 || ready(k.idle) || ready(k.next) {
		return true
	}
	return k.pending.HasReady()
}

// receive applies everything that has happened.
func (k *lock) receive() {
	if ready(k.idle) {
		k.idle = nil
	}
	if ready(k.next) {
		k.next = nil
	}
	k.pending.Settle()
	for k.asked.Len() > 0 {
		var req historyv1.LockRequest
		if !k.asked.ReceiveAsync(&req) {
			continue // it could not be read
		}
		if a := req.GetAcquire(); a != nil {
			k.table.acquire(a)
		}
		if f := req.GetFree(); f != nil {
			k.table.free(f.GetHolder(), f.GetClaim())
		}
	}
	if !k.table.empty() {
		k.busy = workflow.Now(k.ctx)
	}
}

// answer sends the replies that are due. A requester that cannot be reached has ended, and its claim is removed.
func (k *lock) answer() {
	answers := k.table.replies
	k.table.replies = nil
	for _, a := range answers {
		a.Granted.Lock = k.name
		future := workflow.SignalExternalWorkflow(k.ctx, a.GetTo().GetHolder(), "", names.GrantedSignal, a.GetGranted())
		k.pending.Watch(future, func(f workflow.Future) {
			if f.Get(k.ctx, nil) != nil && !k.table.leave(a.GetTo()) {
				k.checkedAt = time.Time{} // an attempt of the holder may still run
			}
		})
	}
}

// checkHolders finds holders that have ended. It checks from time to time while others wait.
func (k *lock) checkHolders() {
	now := workflow.Now(k.ctx)
	if k.isChecking || len(k.table.waiting) == 0 || now.Sub(k.checkedAt) < k.LookEvery {
		return
	}
	k.isChecking, k.checkedAt = true, now
	ctx := workflow.WithLocalActivityOptions(k.ctx, options.Try("look whether the holders are there"))
	future := workflow.ExecuteLocalActivity(ctx, names.HoldersActivity, proto.CloneOf(&historyv1.HoldersRequest{Held: k.table.held}))
	k.pending.Watch(future, func(f workflow.Future) {
		k.isChecking = false
		var res historyv1.HoldersResponse
		if err := f.Get(k.ctx, &res); err != nil {
			workflow.GetLogger(k.ctx).Warn("could not look up the holders of the lock", "error", err)
			return // try again later
		}
		for _, a := range res.GetGone() {
			k.table.gone(a)
		}
		if res.GetEnding() {
			k.checkedAt = k.checkedAt.Add(min(endingLook-k.LookEvery, 0))
			k.next = nil // that timer is for a later check
		}
	})
}

// wake starts the timers for later work.
func (k *lock) wake() {
	now := workflow.Now(k.ctx)
	if len(k.table.waiting) > 0 && k.next == nil {
		k.next = workflow.NewTimerWithOptions(k.ctx, max(k.LookEvery-now.Sub(k.checkedAt), time.Millisecond),
			workflow.TimerOptions{Summary: "look whether the holders are there"})
	}
	if k.table.empty() && k.idle == nil {
		k.idle = workflow.NewTimerWithOptions(k.ctx, max(k.Idle-now.Sub(k.busy), time.Millisecond),
			workflow.TimerOptions{Summary: "the lock has no holder and no waiter"})
	}
}
