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
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// snapshotInterval is the time between two heartbeats of a node. It is at most 1/snapshotShare
	// of the activity's heartbeat time-out.
	snapshotInterval = 2 * time.Second
	snapshotShare    = 5
	// snapshotTimeout bounds one heartbeat, so that a lost one only delays the next.
	snapshotTimeout = 4 * time.Second
)

// PresenceOptions configures a Presence. All fields are required.
type PresenceOptions struct {
	Client      client.Client
	Name        string
	Incarnation string
	// Snapshot measures the node.
	Snapshot func(context.Context) *v1.NodeSnapshot
	Logger   *slog.Logger
}

// Presence keeps a node in the fleet through the activity Heartbeat. It is safe for concurrent use.
type Presence struct {
	PresenceOptions
	hurry     chan struct{} // capacity 1; a value requests an immediate beat
	mu        sync.Mutex
	sequence  int64
	beating   int       // number of running Heartbeat activities
	left      bool      // a Heartbeat has ended because the worker stops
	suspended bool      // the end of the worker is not that of the node
	heard     time.Time // time of the newest registration, or when the newest acknowledged beat was sent
	awaited   bool      // no Heartbeat has begun since the newest registration
}

// NewPresence returns the presence of a node. It sends no heartbeat until the activity Heartbeat
// runs.
func NewPresence(o PresenceOptions) *Presence {
	return &Presence{PresenceOptions: o, hurry: make(chan struct{}, 1)}
}

// Hurry makes the node beat immediately, because its snapshot has changed.
func (p *Presence) Hurry() {
	select {
	case p.hurry <- struct{}{}:
	default:
	}
}

// Suspend makes the end of the worker one that the server does not learn from Heartbeat: the node does not leave.
func (p *Presence) Suspend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.suspended = true
}

// Heartbeat sends the node's snapshot at an interval until the worker stops, which is how the node
// leaves in order unless it was suspended, or until the server no longer knows the activity.
func (p *Presence) Heartbeat(ctx context.Context, in *historyv1.NodeInput) error {
	info := activity.GetInfo(ctx)
	if in.GetIncarnation() != p.Incarnation {
		return temporal.NewNonRetryableApplicationError("a newer start of the worker has taken over the heartbeat", names.OtherIncarnationError, nil)
	}
	stopping := activity.GetWorkerStopChannel(ctx)
	interval, timeout := snapshotInterval, snapshotTimeout
	if t := info.HeartbeatTimeout; t > 0 {
		interval, timeout = Interval(t), min(timeout, t/snapshotShare*2)
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
			return p.leave()
		case <-p.hurry:
		case <-ticker.C:
		}
	}
}

// Interval returns the time between two heartbeats of a node that may be silent for offlineAfter.
func Interval(offlineAfter time.Duration) time.Duration {
	return min(snapshotInterval, offlineAfter/snapshotShare)
}

// beat sends one heartbeat. It returns an error only if this activity must end. An unreachable
// server is not an error.
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

// Registered records that the node has been registered and that its Heartbeat is about to start.
func (p *Presence) Registered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard, p.awaited = time.Now(), true
}

// Lost reports whether the node must register again because the server no longer knows its
// Heartbeat or never started one. offlineAfter is how long the node may be silent.
func (p *Presence) Lost(offlineAfter time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	patience := offlineAfter / snapshotShare // the next Heartbeat is due soon
	if p.awaited {
		patience = offlineAfter // as long as the server waits for a worker to pick it up
	}
	// While a Heartbeat runs, the server reports the loss itself.
	return p.beating == 0 && time.Since(p.heard) > patience
}

// Silence returns how long the server has acknowledged nothing from the node. The node has been registered.
func (p *Presence) Silence() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.heard)
}

// Left reports whether the end of a Heartbeat has informed the server that the node leaves.
func (p *Presence) Left() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

// leave returns the result of a Heartbeat that ends because the worker stops.
func (p *Presence) leave() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.suspended {
		return activity.ErrResultPending
	}
	p.left = true
	return nil
}

func (p *Presence) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beating++
	p.awaited = false
}

func (p *Presence) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beating--
}
