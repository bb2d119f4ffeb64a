package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// Term is one leadership, with a queue of its own.
type Term interface {
	// Benched returns the nodes that are excluded from placement because their attempts kept
	// failing, each with the end of its exclusion.
	Benched() map[string]time.Time
	// Suspicions returns, by node, the number of dispatches that were not picked up or not started.
	Suspicions() map[string]int32
	// Stop ends the term. It returns when the term dispatches and places nothing any more.
	Stop()
}

// Candidate implements the activity Lead for a process that may own the placement queue.
type Candidate struct {
	Client client.Client
	// Identity names this process for people.
	Identity string
	// Store is the identity of the process's store, or "" if it could not be read.
	Store string
	// Version is the version of this program.
	Version string
	// PrivateStore is set if the store ends with the process.
	PrivateStore bool
	// Timing sets the lease of the leader. The server keeps it from one leader to the next.
	Timing Timing
	// Lock acquires the leader's lock on this machine for a leadership with the given epoch, if no
	// other process holds the lock. release gives the lock back. Lock is nil if there is no lock.
	Lock func(epoch string) (release func())
	// Begin starts a term with a placement queue of the given epoch. valid reports whether the
	// lease still holds; the term calls it because the process may have been frozen since Own last
	// checked.
	Begin  func(epoch string, valid func() bool) (Term, error)
	Logger *slog.Logger
}

// Lead makes this process the leader for as long as its beats are
// acknowledged. It always returns an error, so that Temporal hands the leadership to another
// process, immediately if this worker stops.
func (o *Candidate) Lead(ctx context.Context) error {
	info := activity.GetInfo(ctx)
	token := info.TaskToken
	stopping := activity.GetWorkerStopChannel(ctx)
	beat := &historyv1.LeaderHeartbeat{Identity: o.Identity, Epoch: uuid.NewString(), Since: timestamppb.Now(), Store: o.Store, PrivateStore: o.PrivateStore, Version: o.Version}
	if o.Lock != nil {
		defer o.Lock(beat.GetEpoch())()
	}
	terms, err := o.agreeTerms(ctx, info)
	if err != nil {
		return endedBecause("NotConfirmed", "the leadership was not confirmed", err)
	}
	lease := newLeaseClock(terms.lease)
	if acknowledged, err := o.beat(ctx, token, beat, terms, lease); !acknowledged {
		return endedBecause("NotConfirmed", "the leadership was not confirmed", err)
	}
	term, err := o.Begin(beat.GetEpoch(), lease.valid)
	if err != nil {
		o.Logger.Error("this process cannot own the placement queue", "error", err)
		return err
	}
	o.Logger.Info("this process is the leader", "epoch", beat.GetEpoch())
	defer func() {
		term.Stop()
		o.Logger.Info("this process is no longer the leader", "epoch", beat.GetEpoch())
	}()
	ticker := time.NewTicker(terms.renewal)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return endedBecause("TakenBack", "the leadership was withdrawn", nil)
		case <-stopping:
			return endedBecause("HandedOver", "the process is stopping", nil)
		case <-ticker.C:
		}
		beat := proto.CloneOf(beat)
		beat.Benched = map[string]*timestamppb.Timestamp{}
		for node, until := range term.Benched() {
			beat.Benched[node] = timestamppb.New(until)
		}
		beat.Suspicions = term.Suspicions()
		if _, err := o.beat(ctx, token, beat, terms, lease); err != nil {
			return err
		}
		if !lease.valid() {
			o.Logger.Warn("the lease of the leader was not renewed in time")
			return endedBecause("LeaseLost", "the lease was not renewed in time", nil)
		}
	}
}

// agreeTerms sets the server's time-out to the lease of this process, where it stays until a leader with another lease follows.
// It returns the durations that follow from the time-out. If the server does not confirm the change, they are safe for both.
func (o *Candidate) agreeTerms(ctx context.Context, info activity.Info) (terms, error) {
	timing := o.Timing.WithDefaults()
	// A change that is abandoned could take effect during the term of the next leader.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), termsOf(info.HeartbeatTimeout, timing.Renewal).beat)
	defer cancel()
	before, err := o.serverTimeout(ctx, info)
	if err != nil {
		return terms{}, fmt.Errorf("read the time-out of the leader: %w", err)
	}
	if before == timing.Lease {
		return termsOf(timing.Lease, timing.Renewal), nil
	}
	_, err = o.Client.WorkflowService().UpdateActivityOptions(ctx, &workflowservice.UpdateActivityOptionsRequest{
		Namespace: info.Namespace, Identity: o.Identity,
		Execution:       &commonpb.WorkflowExecution{WorkflowId: info.WorkflowExecution.ID, RunId: info.WorkflowExecution.RunID},
		Activity:        &workflowservice.UpdateActivityOptionsRequest_Id{Id: info.ActivityID},
		ActivityOptions: &activitypb.ActivityOptions{HeartbeatTimeout: durationpb.New(timing.Lease)},
		UpdateMask:      &fieldmaskpb.FieldMask{Paths: []string{"heartbeat_timeout"}},
	})
	if err != nil {
		o.Logger.Warn("the lease of the leader could not be set", "lease", timing.Lease, "before", before, "error", err)
		return termsOf(min(before, timing.Lease), timing.Renewal), nil
	}
	o.Logger.Info("the lease of the leader is set; every gateway of a fleet should have the same", "lease", timing.Lease, "before", before)
	return termsOf(timing.Lease, timing.Renewal), nil
}

// serverTimeout returns how long the server allows the leader to be silent. info has only the time-out with which the election
// began.
func (o *Candidate) serverTimeout(ctx context.Context, info activity.Info) (time.Duration, error) {
	d, err := o.Client.DescribeWorkflowExecution(ctx, info.WorkflowExecution.ID, info.WorkflowExecution.RunID)
	if err != nil {
		return 0, err
	}
	for _, p := range d.GetPendingActivities() {
		if timeout := p.GetActivityOptions().GetHeartbeatTimeout().AsDuration(); p.GetActivityId() == info.ActivityID && timeout > 0 {
			return timeout, nil
		}
	}
	return info.HeartbeatTimeout, nil // the server is too old to change it
}

// endedBecause returns the error that passes the leadership to another process. It is benign because
// everything relevant has been logged already.
func endedBecause(kind, message string, cause error) error {
	return temporal.NewApplicationErrorWithOptions(message, kind, temporal.ApplicationErrorOptions{
		Category: temporal.ApplicationErrorCategoryBenign, Cause: cause,
	})
}

// beat sends one beat and renews the lease if the server acknowledges it. It returns an error if
// the leadership is lost.
func (o *Candidate) beat(ctx context.Context, token []byte, beat *historyv1.LeaderHeartbeat, terms terms, lease *leaseClock) (acknowledged bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(terms.beat, lease.left()))
	defer cancel()
	sent := now()
	err = o.Client.RecordActivityHeartbeat(ctx, token, beat)
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone || temporal.IsCanceledError(err) && ctx.Err() == nil {
		return false, endedBecause("TakenBack", "the leadership was withdrawn", err)
	}
	if err != nil {
		o.Logger.Debug("the leadership could not be renewed", "error", err)
		return false, nil
	}
	lease.renew(sent)
	return true, nil
}

// leaseClock measures the remaining time of a renewable lease.
type leaseClock struct {
	length time.Duration
	from   atomic.Pointer[instant]
}

// instant is one moment on two clocks. The monotonic clock does not count while the machine sleeps;
// the wall clock can be set.
type instant struct{ monotonic, wall time.Time }

func now() instant {
	t := time.Now()
	return instant{t, t.Round(0)}
}

// newLeaseClock returns a clock whose lease starts now.
func newLeaseClock(length time.Duration) *leaseClock {
	l := &leaseClock{length: length}
	l.renew(now())
	return l
}

func (l *leaseClock) renew(from instant) { l.from.Store(&from) }

// left returns the remaining time of the lease, by whichever clock has advanced further.
func (l *leaseClock) left() time.Duration {
	from, t := l.from.Load(), now()
	return l.length - max(t.monotonic.Sub(from.monotonic), t.wall.Sub(from.wall))
}

func (l *leaseClock) valid() bool { return l.left() > 0 }
