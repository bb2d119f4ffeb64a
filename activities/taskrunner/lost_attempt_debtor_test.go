package taskrunner

import (
	"errors"
	"strings"
	"testing"
	"time"

	"switchyard/activities/registry"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// A node owes an answer while it may still record one.
func TestNodeOwesAnswer(t *testing.T) {
	snapshot := func(incarnation string, sequence int64, running ...*v1.RunningAttempt) *v1.NodeSnapshot {
		return &v1.NodeSnapshot{Incarnation: incarnation, Sequence: sequence, Running: running}
	}
	alive := func(s *v1.NodeSnapshot) *registry.Entry {
		return &registry.Entry{Record: &historyv1.NodeRecord{State: v1.NodeActive}, Snapshot: s}
	}
	offline := func(reason string) *registry.Entry {
		return &registry.Entry{Record: &historyv1.NodeRecord{State: v1.NodeOffline, Reason: reason}}
	}
	// Its newest heartbeat lists the attempt, and nothing follows it.
	restarting := &registry.Entry{Record: &historyv1.NodeRecord{State: v1.NodeRestarting}, Snapshot: snapshot("one", 9)}
	its, other := &v1.RunningAttempt{RunId: "r", Task: "each[4]", Claim: 7}, &v1.RunningAttempt{RunId: "r", Task: "each[4]", Claim: 8}
	spooling := snapshot("one", 3)
	spooling.Spooled = 1
	type look struct {
		after time.Duration // since the first look
		entry *registry.Entry
		err   error
		owes  bool
	}
	soon, late := 2*time.Second, 4*time.Second // before and after the wait for a silent node ends if the task is retried
	for name, looks := range map[string][]look{
		"it runs, then it does not": {
			{0, alive(snapshot("one", 1, its)), nil, true},
			{time.Hour, alive(snapshot("one", 9, other, its)), nil, true},
			{time.Hour, alive(snapshot("one", 10, other)), nil, false},
		},
		"an old snapshot says nothing": {
			{0, alive(snapshot("one", 2)), nil, true}, {time.Minute, alive(snapshot("one", 2)), nil, true}, {time.Minute, alive(snapshot("one", 3)), nil, false},
		},
		"records on their way": {
			{0, alive(snapshot("one", 2)), nil, true}, {time.Minute, alive(spooling), nil, true}, {time.Minute, alive(snapshot("one", 4)), nil, false},
		},
		"another start of the worker that has taken it over": {
			{0, alive(snapshot("one", 5)), nil, true}, {time.Second, alive(nil), nil, true},
			{time.Minute, alive(snapshot("two", 1, its)), nil, true}, {time.Minute, alive(snapshot("two", 2)), nil, false},
		},
		"the registry is away": {{0, nil, errors.New("away"), true}, {time.Hour, nil, errors.New("away"), true}},
		"it has left":          {{0, offline(names.NodeLeft), nil, false}},
		"it is offline, and does not come back": {
			{0, offline("no beat for 15s"), nil, true}, {time.Second, offline("no beat for 15s"), nil, true}, {rejoinPatience, offline("no beat for 15s"), nil, false},
		},
		"it is offline, and comes back": {
			{0, offline("no beat for 15s"), nil, true}, {time.Second, alive(nil), nil, true},
			{time.Hour, offline("no beat for 15s"), nil, true}, {time.Hour + rejoinPatience, offline("no beat for 15s"), nil, false},
		},
		"it restarts, and does not come back": {
			{0, restarting, nil, true}, {time.Second, restarting, nil, true}, {rejoinPatience, restarting, nil, false},
		},
		"it restarts, and has left since": {{0, restarting, nil, true}, {time.Second, offline(names.NodeLeft), nil, false}},
		"it restarts, and continues the attempt": {
			{0, restarting, nil, true}, {time.Second, alive(snapshot("two", 1, its)), nil, true}, {time.Hour, alive(snapshot("two", 2, its)), nil, true},
		},
		"closed: while it restarts, it runs until its lease is over": {
			{soon, restarting, nil, true}, {14 * time.Second, restarting, nil, true}, {16 * time.Second, restarting, nil, false},
		},
		"it is removed":                 {{0, nil, registry.ErrUnknown, false}},
		"it is offline, and is removed": {{0, offline("no beat for 15s"), nil, true}, {time.Second, nil, registry.ErrUnknown, false}},
		"retried: it runs, then its record is on its way": {
			{0, alive(snapshot("one", 1)), nil, true}, {soon, alive(snapshot("one", 2, its)), nil, true},
			{time.Hour, alive(spooling), nil, true}, {time.Hour, alive(snapshot("one", 4)), nil, false},
		},
		"retried: it is silent": {{0, alive(spooling), nil, true}, {soon, alive(spooling), nil, true}, {late, alive(spooling), nil, false}},
		"retried: it is offline, and comes back": {
			{0, offline("no beat for 15s"), nil, true}, {soon, alive(nil), nil, true}, {soon, alive(snapshot("one", 2)), nil, true},
			{soon, alive(spooling), nil, true}, {time.Hour, offline("no beat for 15s"), nil, true}, {time.Hour + late, offline("no beat for 15s"), nil, false},
		},
		"retried: it has left":          {{0, offline(names.NodeLeft), nil, false}},
		"retried: it is removed":        {{0, nil, registry.ErrUnknown, false}},
		"retried: the registry is away": {{0, nil, errors.New("away"), true}, {time.Hour, nil, errors.New("away"), true}},
		"closed: a snapshot may be from before": {
			{0, alive(snapshot("one", 1)), nil, true}, {time.Second, alive(snapshot("one", 2)), nil, true},
			{soon, alive(snapshot("one", 2)), nil, true}, {late, alive(snapshot("one", 3)), nil, false},
		},
		"closed: it runs until its node lists it no more": {
			{soon, alive(snapshot("one", 2, its)), nil, true}, {time.Hour, alive(snapshot("one", 3, its)), nil, true},
			{time.Hour, alive(snapshot("one", 4)), nil, false},
		},
		"closed: on a silent node it may run until its lease is over": {
			{soon, nil, registry.ErrUnknown, true}, {14 * time.Second, nil, registry.ErrUnknown, true}, {16 * time.Second, nil, registry.ErrUnknown, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := debtor{
				req:     &historyv1.ExecuteRequest{RunId: "r", Task: "each", Index: new(int32(4)), Claim: 7},
				retried: strings.HasPrefix(name, "retried"),
			}
			begin := time.Now()
			if strings.HasPrefix(name, "closed") {
				d.readFrom, d.leaseUntil = begin.Add(snapshotAge), begin.Add(defaultHeartbeatTimeout)
			}
			for i, l := range looks {
				if got := d.owes(l.entry, l.err, begin.Add(l.after)); got != l.owes {
					t.Fatalf("look %d: it owes an answer: %v", i, got)
				}
			}
		})
	}
}
