package registry

import (
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dataconverter"
	"switchyard/workflows/names"
)

const (
	// defaultOfflineAfter is how long a node may be silent if it has not registered a time of its own.
	defaultOfflineAfter = 15 * time.Second
	// staleShare is the fraction of that time after which the node gets no new tasks: 6 s of 15.
	staleShare = 0.4
)

// Entry is what the registry holds of a node: its record and its newest heartbeat.
type Entry struct {
	Record *historyv1.NodeRecord
	// Snapshot is from the newest heartbeat of the registered incarnation. It is nil if the node is offline or has not
	// sent a heartbeat yet.
	Snapshot *v1.NodeSnapshot
	// BeatAt is when the server received that heartbeat, by the server's clock, or zero if there is none.
	BeatAt time.Time
}

// EndedAt returns when the worker of an offline or restarting node last showed a sign of life. A worker that left or
// restarts did so at that moment; a lost one had been silent for offlineAfter by then.
func (e *Entry) EndedAt() time.Time {
	r := e.Record
	last := r.GetStateSince().AsTime()
	if r.GetReason() != names.NodeLeft && r.GetState() != v1.NodeRestarting {
		last = last.Add(-e.OfflineAfter())
	}
	if registered := r.GetRegisteredAt().AsTime(); last.Before(registered) {
		return registered
	}
	return last
}

// StaleAfter returns how long the node may be silent before it gets no new tasks.
func (e *Entry) StaleAfter() time.Duration {
	return time.Duration(staleShare * float64(e.OfflineAfter()))
}

// OfflineAfter returns how long the node may be silent before it is offline.
func (e *Entry) OfflineAfter() time.Duration {
	if after := e.Record.GetRegistration().GetOfflineAfter().AsDuration(); after > 0 {
		return after
	}
	return defaultOfflineAfter
}

// Known returns the latest known figures of the node: its snapshot, or else the one that it registered with. It may be
// nil.
func (e *Entry) Known() *v1.NodeSnapshot {
	if e.Snapshot != nil {
		return e.Snapshot
	}
	return e.Record.GetRegistration().GetSnapshot()
}

// State returns the node's state and the reason for it, or why an active node takes no tasks by its terms. silence is the age of the newest heartbeat, or, without a
// heartbeat, of the registration. store is the identity of the fleet's store, or "" if unknown. A node that uses
// another store is stale, because its tasks could not read what other tasks have stored.
func (e *Entry) State(silence time.Duration, store string) (state, reason string) {
	switch {
	case e.Record.GetState() == v1.NodeOffline:
		return v1.NodeOffline, e.Record.GetReason()
	case e.Record.GetState() == v1.NodeRestarting:
		return v1.NodeRestarting, e.Record.GetReason()
	case silence >= e.StaleAfter() && e.Snapshot == nil:
		return v1.NodeStale, "no heartbeat yet"
	case silence >= e.StaleAfter():
		return v1.NodeStale, fmt.Sprintf("last heartbeat %s ago", silence.Round(time.Second))
	case e.Snapshot == nil && e.Record.GetTerms() != nil: // the snapshot of the registration does not have them
		return v1.NodeStale, "no heartbeat yet"
	case e.Record.GetDrain() != nil:
		return v1.NodeDraining, e.Record.GetReason()
	case e.Snapshot.GetDraining():
		return v1.NodeDraining, "its worker stops"
	case e.Known().GetStoreProblem() != "":
		return v1.NodeStale, e.Known().GetStoreProblem()
	case store != "" && e.Known().GetStore() != "" && e.Known().GetStore() != store:
		return v1.NodeStale, OtherStore
	case isTooOld(e.Record.GetRegistration(), historyv1.WrittenDataLevel()):
		return v1.NodeStale, TooOld
	}
	return v1.NodeActive, e.Known().GetRefusal()
}

// OtherStore is the reason for the state of a node that uses another store than the fleet.
const OtherStore = "its store is not that of the fleet; start its worker with the gateway's URL, or with the gateway's --store"

// isTooOld reports whether a worker would misread what a fleet gives it that writes a data level.
func isTooOld(worker *historyv1.NodeRegistration, written int) bool {
	return max(int(worker.GetDataLevel()), 1) < written
}

// TooOld is the reason for the state of a node that would misread what its tasks get.
const TooOld = "its worker is too old for the data of the fleet; start it with the version of the gateways"

// entryOf decodes an entry from the description of its workflow.
func entryOf(name string, d *workflowservice.DescribeWorkflowExecutionResponse) *Entry {
	record := recordOf(name, d.GetWorkflowExecutionInfo())
	e := &Entry{Record: record}
	if record.GetState() == v1.NodeOffline {
		return e
	}
	incarnation := record.GetRegistration().GetIncarnation()
	for _, a := range d.GetPendingActivities() {
		if a.GetActivityType().GetName() != names.HeartbeatActivity || a.GetHeartbeatDetails() == nil {
			continue
		}
		var s v1.NodeSnapshot
		if err := decode(a.GetHeartbeatDetails().GetPayloads(), &s); err != nil {
			record.State, record.Reason = v1.NodeOffline, fmt.Sprintf("its heartbeat cannot be read: %v", err)
			return &Entry{Record: record}
		}
		// The activity of an earlier incarnation remains pending until its time-out.
		if incarnation != "" && s.GetIncarnation() != incarnation || s.GetSequence() <= e.Snapshot.GetSequence() && e.Snapshot != nil {
			continue
		}
		e.Snapshot, e.BeatAt = &s, a.GetLastHeartbeatTime().AsTime()
	}
	return e
}

// recordOf decodes the record in a workflow's memo. An entry that an older version has created has no record in its
// memo and gets a default one. A node whose record cannot be read is offline, and the others can be used.
func recordOf(name string, info *workflowpb.WorkflowExecutionInfo) *historyv1.NodeRecord {
	payload := info.GetMemo().GetFields()[names.NodeMemo]
	if payload == nil {
		return &historyv1.NodeRecord{Name: name, State: v1.NodeActive, StateSince: info.GetStartTime(), RegisteredAt: info.GetStartTime()}
	}
	var record historyv1.NodeRecord
	if err := decode([]*commonpb.Payload{payload}, &record); err != nil {
		return &historyv1.NodeRecord{Name: name, State: v1.NodeOffline, Reason: fmt.Sprintf("its record cannot be read: %v", err), StateSince: info.GetStartTime(), RegisteredAt: info.GetStartTime()}
	}
	return &record
}

func decode(payloads []*commonpb.Payload, into any) error {
	return dataconverter.New().FromPayloads(&commonpb.Payloads{Payloads: payloads}, into)
}
