package taskrunner

import (
	"errors"
	"slices"
	"time"

	"switchyard/activities/registry"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// A node whose heartbeats are silent may still record the answer of an attempt: it is cut off, or its worker is restarted.
// The control process waits for it within these limits.

const (
	// snapshotAge exceeds the age of the newest snapshot of a node that the control process holds.
	snapshotAge = 2 * time.Second
	// rejoinPatience is how long an offline node that did not leave in order may still come back with an answer. After an
	// outage of the server, the server's timers fire in the same moment as the nodes reach it again.
	rejoinPatience = 8 * time.Second
)

// debtor tracks a node that may still owe the answer of an attempt.
type debtor struct {
	req *historyv1.ExecuteRequest
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

func debtorOf(await *historyv1.AwaitAnswerRequest) *debtor {
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
	case unknown: // a person has removed it
		return now.Before(d.leaseUntil)
	case e.Record.GetState() == v1.NodeOffline || e.Record.GetState() == v1.NodeRestarting:
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
		patience = e.StaleAfter() / 2
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
