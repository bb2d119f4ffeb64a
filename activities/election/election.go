package election

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// beatInterval is the time between the heartbeats of the owner.
	beatInterval = time.Second
	// leaseTime is how long the ownership lasts from when its last acknowledged beat
	// was sent. The server waits 5 s from when it took the beat, which is later; what
	// is left is the time to stop in.
	leaseTime = 4 * time.Second
	// beatTimeout bounds one beat, so that a lost one leaves time for another.
	beatTimeout = 1500 * time.Millisecond
)

// Term is one ownership of the placement queue, with a queue of its own.
type Term interface {
	// Benched are the nodes that get nothing because their attempts kept failing, with until when.
	Benched() map[string]time.Time
	// Suspicions counts, by node, the dispatches that were not picked up, or not started.
	Suspicions() map[string]int32
	// Stop ends the term and returns when nothing is carried or placed any more.
	Stop()
}

// Candidate has the activity Own: it is a process that may own the placement queue.
type Candidate struct {
	Client client.Client
	// Identity of this process, for people.
	Identity string
	// Store is the identity of the process's store, or "" if it could not be read.
	Store string
	// PrivateStore is set if the store ends with the process.
	PrivateStore bool
	// Lock takes the machine's lock for the owner and returns the machine, or "" where
	// another process has it. It is nil if there is no lock. release gives the lock back.
	Lock func() (machine string, release func())
	// Begin starts a term with a placement queue of that epoch. valid reports whether
	// the term still holds: between the checks of Own time may have passed that the
	// process did not see, as when it was frozen.
	Begin  func(epoch string, valid func() bool) (Term, error)
	Logger *slog.Logger
}

// Own makes this process the owner of the placement queue for as long as its
// beats are acknowledged. It always ends with an error, upon which Temporal gives
// the ownership to another process: at once when this worker stops.
func (o *Candidate) Own(ctx context.Context) error {
	token := activity.GetInfo(ctx).TaskToken
	stopping := activity.GetWorkerStopChannel(ctx)
	beat := &v1.OwnerBeat{Identity: o.Identity, Epoch: uuid.NewString(), Since: timestamppb.Now(), Store: o.Store, PrivateStore: o.PrivateStore}
	if o.Lock != nil {
		machine, release := o.Lock()
		defer release()
		beat.Machine = machine
	}
	lease := newLeaseClock(leaseTime)
	if acknowledged, err := o.beat(ctx, token, beat, lease); !acknowledged {
		return endedBecause("NotConfirmed", "the ownership was not confirmed", err)
	}
	term, err := o.Begin(beat.GetEpoch(), lease.valid)
	if err != nil {
		o.Logger.Error("this process cannot own the placement queue", "error", err)
		return err
	}
	o.Logger.Info("this process owns the placement queue", "epoch", beat.GetEpoch())
	defer func() {
		term.Stop()
		o.Logger.Info("this process no longer owns the placement queue", "epoch", beat.GetEpoch())
	}()
	ticker := time.NewTicker(beatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return endedBecause("TakenBack", "the ownership was taken back", nil)
		case <-stopping:
			return endedBecause("HandedOver", "the process stops", nil)
		case <-ticker.C:
		}
		beat := proto.CloneOf(beat)
		beat.Benched = map[string]*timestamppb.Timestamp{}
		for node, until := range term.Benched() {
			beat.Benched[node] = timestamppb.New(until)
		}
		beat.Suspicions = term.Suspicions()
		if _, err := o.beat(ctx, token, beat, lease); err != nil {
			return err
		}
		if !lease.valid() {
			o.Logger.Warn("the ownership of the placement queue was not renewed in time")
			return endedBecause("LeaseLost", "the lease was not renewed in time", nil)
		}
	}
}

// endedBecause returns why the ownership goes to another process. The error is benign: what matters
// of it has been logged.
func endedBecause(kind, message string, cause error) error {
	return temporal.NewApplicationErrorWithOptions(message, kind, temporal.ApplicationErrorOptions{
		Category: temporal.ApplicationErrorCategoryBenign, Cause: cause,
	})
}

// beat renews the lease when the server acknowledges it. It returns an error if the
// ownership is lost.
func (o *Candidate) beat(ctx context.Context, token []byte, beat *v1.OwnerBeat, lease *leaseClock) (acknowledged bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(beatTimeout, lease.left()))
	defer cancel()
	sent := now()
	err = o.Client.RecordActivityHeartbeat(ctx, token, beat)
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone || temporal.IsCanceledError(err) && ctx.Err() == nil {
		return false, endedBecause("TakenBack", "the ownership was taken back", err)
	}
	if err != nil {
		o.Logger.Debug("the ownership of the placement queue could not be renewed", "error", err)
		return false, nil
	}
	lease.renew(sent)
	return true, nil
}

// leaseClock measures a lease that is renewed now and then.
type leaseClock struct {
	length time.Duration
	from   atomic.Pointer[instant]
}

// instant is a moment by both clocks: the monotonic one does not count while the
// machine sleeps, the other one may be set.
type instant struct{ monotonic, wall time.Time }

func now() instant {
	t := time.Now()
	return instant{t, t.Round(0)}
}

// newLeaseClock returns a clock whose lease runs from now.
func newLeaseClock(length time.Duration) *leaseClock {
	l := &leaseClock{length: length}
	l.renew(now())
	return l
}

func (l *leaseClock) renew(from instant) { l.from.Store(&from) }

// left returns how long the lease still lasts, by the clock that has gone further.
func (l *leaseClock) left() time.Duration {
	from, t := l.from.Load(), now()
	return l.length - max(t.monotonic.Sub(from.monotonic), t.wall.Sub(from.wall))
}

func (l *leaseClock) valid() bool { return l.left() > 0 }
