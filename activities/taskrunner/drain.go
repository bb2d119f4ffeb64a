package taskrunner

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"switchyard/activities/heartbeat"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// drainBeat is the time between the heartbeats of Drain; the answer to one
	// carries that it was called off, where the server does not push that.
	drainBeat = time.Second
	// drainBeatShare is the part of its heartbeat time-out after which Drain sends one at the latest.
	drainBeatShare = 5
	// drainQuiet is how long nothing may be left on a draining node until it counts
	// as drained: what was on its way there when the drain began has come and been
	// handed back by then.
	drainQuiet = 2 * time.Second
)

// Service takes a node out of service and puts it back, by the activities Drain
// and Undrain.
type Service struct {
	Client client.Client
	Node   *Node
}

// Drain returns when nothing is left on the node, which stays out of service
// then. It is cancelled when the drain is called off.
func (s *Service) Drain(ctx context.Context, drain *v1.NodeDrain) error {
	info := activity.GetInfo(ctx)
	stopping := activity.GetWorkerStopChannel(ctx)
	s.Node.Obey(drain)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := make(chan error, 1)
	go func() { quiet <- s.Node.AwaitQuiet(ctx) }()
	interval := drainBeat
	if t := info.HeartbeatTimeout; t > 0 {
		interval = min(interval, t/drainBeatShare)
	}
	beat := time.NewTicker(interval)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-stopping:
			return temporal.NewApplicationErrorWithOptions("the worker stops", "Stopping", temporal.ApplicationErrorOptions{
				Category: temporal.ApplicationErrorCategoryBenign, Cause: nil,
			})
		case <-beat.C:
			switch err := heartbeat.Send(ctx, s.Client, heartbeat.Timeout, info.TaskToken); err {
			case heartbeat.ErrCancelled:
				return temporal.NewCanceledError()
			case heartbeat.ErrGone:
				return err
			}
		case err := <-quiet:
			return err
		}
	}
}

// Undrain puts the node back into service.
func (s *Service) Undrain(context.Context) error {
	s.Node.EndDrain()
	return nil
}

// Obey brings a node into the service that the registry wants it in; nil: it is
// to take attempts.
func (n *Node) Obey(drain *v1.NodeDrain) {
	switch {
	case drain == nil:
		n.EndDrain()
	case drain.GetDeadline() == nil:
		n.BeginDrain(time.Time{}, drain.GetReason())
	default:
		n.BeginDrain(drain.GetDeadline().AsTime(), drain.GetReason())
	}
}

// AwaitQuiet returns when a draining node has had no attempt for so long that
// none can be on its way there any more, or with the cause of ctx.
func (n *Node) AwaitQuiet(ctx context.Context) error {
	for {
		if err := n.AwaitIdle(ctx); err != nil {
			return err
		}
		before := n.attempts.total()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(drainQuiet):
		}
		if n.attempts.total() == before {
			return nil
		}
	}
}
