package activities

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// firstBeat is when an attempt that lasts shows that it has started. Shorter
	// ones end without a beat: their end says more.
	firstBeat = 200 * time.Millisecond
	// beatTimeout bounds one beat, so that a silent server delays the next one only.
	beatTimeout = 4 * time.Second
)

// beat tells the server that an attempt is alive, and hears from it that the
// attempt is not wanted any more. It goes through the client and not through
// activity.RecordHeartbeat, which cancels an activity when the server was away
// for a second: a transport error never ends a task.
type beat struct {
	progress atomic.Pointer[v1.ExecuteProgress]
	cancel   context.CancelFunc
	done     sync.WaitGroup
}

func (n *Node) startBeat(ctx context.Context, stop context.CancelCauseFunc, token []byte, claim int32) *beat {
	b := &beat{}
	b.progress.Store(&v1.ExecuteProgress{Claim: claim})
	stopping := activity.GetWorkerStopChannel(ctx)
	ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	b.done.Go(func() {
		timer := time.NewTimer(firstBeat)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-stopping:
				stop(errDraining)
				stopping = nil
				continue
			case <-timer.C:
			}
			if cause := n.beatOnce(ctx, token, b.progress.Load()); cause != nil {
				stop(cause)
			}
			timer.Reset(n.BeatInterval)
		}
	})
	return b
}

// beatOnce returns why the attempt must stop, or nil.
func (n *Node) beatOnce(ctx context.Context, token []byte, details any) error {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	err := n.Client.RecordActivityHeartbeat(ctx, token, details)
	if err == nil {
		return nil
	}
	if temporal.IsCanceledError(err) && ctx.Err() == nil {
		return errCancelled
	}
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return errGone
	}
	return nil
}

// spawned notes that the task's process has started.
func (b *beat) spawned() {
	b.progress.Store(&v1.ExecuteProgress{Claim: b.progress.Load().GetClaim(), Spawned: true, StartedAt: timestamppb.Now()})
}

// startedAt is when the process started, or nil.
func (b *beat) startedAt() *timestamppb.Timestamp { return b.progress.Load().GetStartedAt() }

func (b *beat) stop() {
	b.cancel()
	b.done.Wait()
}

// snapshotInterval is the time between the heartbeats of a node.
const snapshotInterval = 2 * time.Second

// Heartbeat keeps the node in the fleet: it beats with the node's snapshot
// until its worker stops or the server knows it no more.
func (n *Node) Heartbeat(ctx context.Context, in *v1.NodeInput) error {
	token := activity.GetInfo(ctx).TaskToken
	stopping := activity.GetWorkerStopChannel(ctx)
	ticker := time.NewTicker(snapshotInterval)
	defer ticker.Stop()
	for sequence := int64(1); ; sequence++ {
		s := n.Snapshot(ctx)
		s.Name, s.Incarnation, s.Sequence, s.TakenAt = n.Name, in.GetIncarnation(), sequence, timestamppb.Now()
		if cause := n.beatOnce(ctx, token, s); cause != nil {
			return cause
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-stopping:
			return nil
		case <-ticker.C:
		}
	}
}
