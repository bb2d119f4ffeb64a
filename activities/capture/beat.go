package capture

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"switchyard/activities/heartbeat"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// beatInterval is the time between two heartbeats. The reply to a heartbeat reports that the activity has been cancelled.
const beatInterval = 2 * time.Second

// errStopping ends a capture whose worker is stopping.
var errStopping = errors.New("the worker of the node stops")

// progress reports how much of an archive has been stored.
type progress interface{ Stored() int64 }

// beat heartbeats the activity of ctx in the background. It cancels ctx through end when the activity is cancelled or unknown to
// the server, or when the worker stops. The returned function stops the heartbeats.
func (n *Node) beat(ctx context.Context, end context.CancelCauseFunc, p progress) (stop func()) {
	info, stopping := activity.GetInfo(ctx), activity.GetWorkerStopChannel(ctx)
	ended := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		ticker := time.NewTicker(beatInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ctx.Done():
				return
			case <-stopping:
				end(errStopping)
				return
			case <-ticker.C:
			}
			err := heartbeat.Send(ctx, n.Client, heartbeat.Timeout, info.TaskToken, &historyv1.CaptureProgress{Size: p.Stored()})
			if errors.Is(err, heartbeat.ErrCancelled) || errors.Is(err, heartbeat.ErrGone) {
				end(err)
				return
			}
		}
	})
	return func() {
		close(ended)
		beating.Wait()
	}
}
