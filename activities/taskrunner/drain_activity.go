package taskrunner

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"switchyard/activities/heartbeat"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// drainBeat is the time between the heartbeats of Drain. Their answer carries a cancellation if the server does not
	// push it.
	drainBeat = time.Second
	// drainBeatShare is the fraction of the heartbeat time-out after which Drain sends the next heartbeat at the latest.
	drainBeatShare = 5
)

// Service takes a node out of service and puts it back with the activities Drain and Undrain. Its activity Terms sets the terms on which
// the node takes tasks.
type Service struct {
	Client client.Client
	Node   *Node
	// SetTerms replaces all terms that are set at run time.
	SetTerms func(*v1.NodeTerms)
}

// Drain drains the node and returns when it has no attempt left. The node then stays out of service. Drain is cancelled
// when the drain is called off.
func (s *Service) Drain(ctx context.Context, drain *historyv1.NodeDrain) error {
	info := activity.GetInfo(ctx)
	stopping := activity.GetWorkerStopChannel(ctx)
	if err := s.confirm(ctx); err != nil {
		return err
	}
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
			if err := s.confirm(ctx); err != nil {
				return err
			}
		case err := <-quiet:
			return err
		}
	}
}

// Undrain puts the node back into service.
func (s *Service) Undrain(ctx context.Context) error {
	if err := s.confirm(ctx); err != nil {
		return err
	}
	s.Node.EndDrain()
	return nil
}

// Terms sets the terms on which the node takes tasks.
func (s *Service) Terms(ctx context.Context, terms *v1.NodeTerms) error {
	if err := s.confirm(ctx); err != nil {
		return err
	}
	s.SetTerms(terms)
	return nil
}

// confirm sends a heartbeat, and returns an error if the activity must end. An activity that Temporal has given up on, and
// perhaps followed by another one, changes nothing.
func (s *Service) confirm(ctx context.Context) error {
	switch err := heartbeat.Send(ctx, s.Client, heartbeat.Timeout, activity.GetInfo(ctx).TaskToken); err {
	case heartbeat.ErrCancelled:
		return temporal.NewCanceledError()
	case heartbeat.ErrGone:
		return err
	}
	return nil
}
