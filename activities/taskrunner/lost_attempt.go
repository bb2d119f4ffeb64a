package taskrunner

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"switchyard/activities/heartbeat"
	"switchyard/activities/registry"
	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// The pause between two looks at the node of a lost attempt starts at firstAnswerPause and doubles up to
	// lastAnswerPause.
	firstAnswerPause, lastAnswerPause = 200 * time.Millisecond, 2 * time.Second
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
func (l *LostAttempts) Watch(closed *historyv1.AwaitAnswerRequest) func(context.Context) bool {
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
func (l *LostAttempts) AwaitAnswer(ctx context.Context, await *historyv1.AwaitAnswerRequest) (*historyv1.ExecuteResponse, error) {
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
		lost := &historyv1.ExecuteResponse{State: v1.TaskLost, Reason: v1.ReasonNodeLost, Error: "the node was lost while the task ran", Node: req.GetNode()}
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
