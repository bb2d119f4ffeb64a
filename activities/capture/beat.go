package capture

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"switchyard/activities/heartbeat"
	v1 "switchyard/proto/switchyard/v1"
)

// beatInterval is the time between two heartbeats. Their answers say that the activity is cancelled.
const beatInterval = 2 * time.Second

// errStopping ends a capture whose worker stops.
var errStopping = errors.New("the worker of the node stops")

// progress is how much of an archive is stored.
type progress interface{ Stored() int64 }

// beat sends the heartbeats of the activity of ctx, and ends ctx when the activity is to end. It returns a function that ends it.
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
			err := heartbeat.Send(ctx, n.Client, heartbeat.Timeout, info.TaskToken, &v1.CaptureProgress{Size: p.Stored()})
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
