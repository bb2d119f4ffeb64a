package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"switchyard/activities/heartbeat"
	"switchyard/activities/registry"
	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

const (
	// snapshotAge exceeds the age of the newest snapshot of a node that the control process holds.
	snapshotAge = 2 * time.Second
	// The pause between two looks at the node of a lost attempt starts at firstAnswerPause and doubles up to
	// lastAnswerPause.
	firstAnswerPause, lastAnswerPause = 200 * time.Millisecond, 2 * time.Second
	// rejoinPatience is how long an offline node that did not leave in order may still come back with an answer. After an
	// outage of the server, the server's timers fire in the same moment as the nodes reach it again.
	rejoinPatience = 8 * time.Second
	// answerTries is how many consecutive failures of the store make the activity report that the store is away.
	answerTries = 5
)

// LostAttempts implements the activity AwaitAnswer. It is safe for concurrent use.
type LostAttempts struct {
	Client client.Client
	Store  *store.Store
	// Node returns the registry's entry of a node, which is at most about a second old.
	Node func(ctx context.Context, name string) (*registry.Entry, error)
	// AwayUntil returns when Temporal's last known outage ended, or the zero time.
	AwayUntil func() time.Time
}

// Watch returns a function that reports whether an attempt may still be running after its run was closed from outside.
func (l *LostAttempts) Watch(closed *v1.AwaitAnswerRequest) func(context.Context) bool {
	d := debtorOf(closed)
	return func(ctx context.Context) bool {
		entry, err := l.Node(ctx, closed.GetAttempt().GetNode())
		return d.owes(entry, err, time.Now())
	}
}

// AwaitAnswer returns the recorded answer of an attempt that has lost its heartbeats or lease, or whose run was closed
// from outside. The answer has the form of Execute's. If the node will report nothing more, the answer is "moved" if the
// node lives and the attempt's lease has ended it, and "lost" otherwise. AwaitAnswer waits while the node lists the
// attempt, which keeps its place there until its end is recorded. It also waits while the node has records on their way
// to the store.
func (l *LostAttempts) AwaitAnswer(ctx context.Context, await *v1.AwaitAnswerRequest) (*v1.ExecuteResponse, error) {
	ctx, stop := heartbeat.Keep(ctx, l.Client)
	defer stop()
	req := await.GetAttempt()
	debtor := debtorOf(await)
	silentFrom := activity.GetInfo(ctx).ScheduledTime.Add(-await.GetHeartbeatTimeout().AsDuration())
	members := endedMembersOf(req)
	failures := 0
	for pause := firstAnswerPause; ; pause = min(2*pause, lastAnswerPause) {
		outage := l.AwayUntil()
		if outage.Before(silentFrom) {
			outage = time.Time{}
		}
		// After an outage every node has been silent, so silence proves nothing.
		debtor.retried = await.GetRetried() && outage.IsZero()
		entry, entryErr := l.Node(ctx, req.GetNode())
		owes := debtor.owes(entry, entryErr, time.Now())
		found, err := findPriorResults(ctx, l.Store, req, members)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, store.ErrUnreadable):
			found = nil
		case err != nil:
			if failures++; failures == answerTries {
				return nil, temporal.NewNonRetryableApplicationError(err.Error(), "store", err)
			}
			owes = true
		}
		lost := &v1.ExecuteResponse{State: v1.TaskLost, Reason: v1.ReasonNodeLost, Error: "the node was lost while the task ran", Node: req.GetNode()}
		res := withPriorResults(lost, req, members, found)
		if res.GetState() == v1.TaskLost && !owes && debtor.lives(entry) {
			res.State, res.Reason, res.Error = v1.AttemptMoved, v1.ReasonLeaseLost, leaseText(req.GetNode(), outage)
		}
		if res.GetState() != v1.TaskLost || !owes {
			return res, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// debtor tracks a node that may still owe the answer of an attempt.
type debtor struct {
	req *v1.ExecuteRequest
	// retried limits the wait for a silent node to the longest time between two of its snapshots.
	retried bool
	// readFrom is a time from which every snapshot was taken after the attempt was lost or its run was closed. leaseUntil
	// is when nothing of the attempt runs on a silent node any more. Both are zero if those times have passed.
	readFrom, leaseUntil time.Time
	// first is the snapshot at the first look, or nil before that.
	first *v1.NodeSnapshot
	// silentSince is when the node was first seen silent, or zero if it is not.
	silentSince time.Time
}

func debtorOf(await *v1.AwaitAnswerRequest) *debtor {
	d := &debtor{req: await.GetAttempt(), retried: await.GetRetried()}
	if await.GetClosedAt() != nil {
		d.readFrom, d.leaseUntil = await.GetClosedAt().AsTime().Add(snapshotAge), await.GetLeaseUntil().AsTime()
	}
	return d
}

// owes reports whether the node may still record an answer, given the node's entry or the error from reading it.
func (d *debtor) owes(e *registry.Entry, err error, now time.Time) bool {
	switch unknown := errors.Is(err, registry.ErrUnknown); {
	case err != nil && !unknown || now.Before(d.readFrom):
		return true
	case !unknown && e.Record.GetState() == v1.NodeOffline && e.Record.GetReason() == names.NodeLeft:
		return false // it left only after its attempts had ended
	case unknown || e.Record.GetState() == v1.NodeOffline:
		return d.comesBack(e, now)
	case d.isNews(e.Snapshot):
		d.silentSince = time.Time{}
		return d.lists(e.Snapshot) || e.Snapshot.GetSpooled() > 0 // the record may be among the spooled values
	case d.retried:
		return d.comesBack(e, now)
	}
	d.silentSince = time.Time{}
	return true
}

// lives reports whether the worker that received the attempt has sent a snapshot since the attempt was lost.
func (d *debtor) lives(e *registry.Entry) bool {
	return e != nil && e.Record.GetState() != v1.NodeOffline && d.isNews(e.Snapshot) &&
		d.req.GetIncarnation() != "" && e.Snapshot.GetIncarnation() == d.req.GetIncarnation()
}

// leaseText returns why an attempt on a live node has lost its lease. outage is when Temporal's last outage ended, or the
// zero time.
func leaseText(node string, outage time.Time) string {
	if outage.IsZero() {
		return fmt.Sprintf("node %s and Temporal did not reach each other, so that the attempt lost its lease and ended itself", node)
	}
	return fmt.Sprintf("the control plane was away until %s, so that the attempt on node %s lost its lease and ended itself", phrase.Clock(outage), node)
}

// isNews reports whether a snapshot was taken after the first look, and therefore after the attempt was lost.
func (d *debtor) isNews(s *v1.NodeSnapshot) bool {
	if s == nil { // the node has registered but not yet sent a heartbeat
		return false
	}
	if d.first == nil {
		d.first = s
	}
	return s.GetIncarnation() != d.first.GetIncarnation() || s.GetSequence() > d.first.GetSequence()
}

// comesBack reports whether a silent node still has time to come back.
func (d *debtor) comesBack(e *registry.Entry, now time.Time) bool {
	if d.silentSince.IsZero() {
		d.silentSince = now
	}
	if now.Before(d.leaseUntil) {
		return true
	}
	patience := rejoinPatience
	if d.retried {
		patience = 0
		if e != nil {
			patience = e.StaleAfter() / 2
		}
	}
	return now.Sub(d.silentSince) < patience
}

// lists reports whether the attempt holds a place on its node.
func (d *debtor) lists(s *v1.NodeSnapshot) bool {
	name := d.req.GetTask()
	if d.req.Index != nil {
		name = names.InstanceName(name, int(d.req.GetIndex()))
	}
	return slices.ContainsFunc(s.GetRunning(), func(a *v1.RunningAttempt) bool {
		return a.GetRunId() == d.req.GetRunId() && a.GetTask() == name && a.GetClaim() == d.req.GetClaim()
	})
}
