package presence

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/heartbeat"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// snapshotInterval is the time between the heartbeats of a node, and
	// snapshotShare the part of its time-out that it is at most.
	snapshotInterval = 2 * time.Second
	snapshotShare    = 5
	// snapshotTimeout bounds one heartbeat, so that a lost one only delays the next.
	snapshotTimeout = 4 * time.Second
)

// PresenceOptions describe a node to its Presence. All are required.
type PresenceOptions struct {
	Client      client.Client
	Name        string
	Incarnation string
	// Snapshot takes the node's figures.
	Snapshot func(context.Context) *v1.NodeSnapshot
	Logger   *slog.Logger
}

// Presence keeps a node in the fleet, by the activity Heartbeat. It is safe for
// concurrent use.
type Presence struct {
	PresenceOptions
	hurry    chan struct{} // has room for one: beat at once
	mu       sync.Mutex
	sequence int64
	beating  int       // activities that beat now
	left     bool      // one has ended because the worker stops
	heard    time.Time // when the newest acknowledged beat was sent, or the newest registration was made
}

// NewPresence returns the presence of a node.
func NewPresence(o PresenceOptions) *Presence {
	return &Presence{PresenceOptions: o, hurry: make(chan struct{}, 1)}
}

// Hurry has the node beat at once, because its snapshot says something new.
func (p *Presence) Hurry() {
	select {
	case p.hurry <- struct{}{}:
	default:
	}
}

// Heartbeat beats with the node's snapshot until the worker stops, which is how
// the node leaves in order, or the server does not know the activity any more.
func (p *Presence) Heartbeat(ctx context.Context, in *v1.NodeInput) error {
	info := activity.GetInfo(ctx)
	if in.GetIncarnation() != p.Incarnation {
		return temporal.NewNonRetryableApplicationError("another start of the worker has taken the heartbeat", names.OtherIncarnationError, nil)
	}
	stopping := activity.GetWorkerStopChannel(ctx)
	interval, timeout := snapshotInterval, snapshotTimeout
	if t := info.HeartbeatTimeout; t > 0 {
		interval, timeout = min(interval, t/snapshotShare), min(timeout, t/snapshotShare*2)
	}
	p.begin()
	defer p.end()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := p.beat(ctx, info.TaskToken, timeout); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-stopping:
			p.leave()
			return nil
		case <-p.hurry:
		case <-ticker.C:
		}
	}
}

// beat returns an error when this activity is not wanted any more. A server that
// is away is none.
func (p *Presence) beat(ctx context.Context, token []byte, timeout time.Duration) error {
	s := p.Snapshot(ctx)
	p.mu.Lock()
	p.sequence++
	s.Name, s.Incarnation, s.Sequence, s.TakenAt = p.Name, p.Incarnation, p.sequence, timestamppb.Now()
	p.mu.Unlock()
	sent := time.Now()
	err := heartbeat.Send(ctx, p.Client, timeout, token, s)
	switch err {
	case heartbeat.ErrCancelled:
		return temporal.NewCanceledError()
	case heartbeat.ErrGone:
		return err
	}
	if err != nil {
		p.Logger.Debug("a heartbeat of the node was not acknowledged", "error", err)
		return nil
	}
	p.mu.Lock()
	p.heard = sent
	p.mu.Unlock()
	return nil
}

// Registered notes that the node has been registered: its Heartbeat is on its way.
func (p *Presence) Registered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = time.Now()
}

// Lost reports whether the node must register again, given how long it may be
// silent: the server knows its Heartbeat no more, or never started one.
func (p *Presence) Lost(offlineAfter time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	// While it beats, the server says when it is lost. When it does not, the next one is due soon.
	return p.beating == 0 && time.Since(p.heard) > offlineAfter/snapshotShare
}

// Left reports whether the server was informed that the node leaves, by the end of a Heartbeat.
func (p *Presence) Left() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

func (p *Presence) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
}

func (p *Presence) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beating++
}

func (p *Presence) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beating--
}
