package taskrunner

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchyard/activities/registry"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestTermsOfFifteenSeconds(t *testing.T) {
	t.Parallel()
	want := terms{beat: 3 * time.Second, again: 500 * time.Millisecond, answer: 2500 * time.Millisecond}
	for _, got := range []terms{termsOf(15*time.Second, 5*time.Second), termsOf(15*time.Second, 0)} {
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// However short the time-out is, the lease survives several lost heartbeats and ends before the server reassigns the
// task.
func TestTermsLeaveRoom(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		timeout := time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(t, "timeout"))
		interval := time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(t, "interval"))
		s := termsOf(timeout, interval)
		stop, kill := leaseEnds(timeout, timeout, 0)
		if interval > 0 && s.beat > interval || s.beat <= 0 || s.again <= 0 || s.answer <= 0 {
			t.Fatalf("%+v", s)
		}
		if two := s.beat + 2*(s.answer+s.again); two > stop {
			t.Fatalf("two beats without an answer take %v, and the lease is lost after %v", two, stop)
		}
		if stop >= kill || kill >= timeout {
			t.Fatalf("stops after %v, is killed after %v, of %v", stop, kill, timeout)
		}
	})
}

// An attempt is not lost with its node if the worker that received it lives on without it.
func TestNodeLivesOnWithoutTheAttempt(t *testing.T) {
	snapshot := func(incarnation string, sequence int64) *v1.NodeSnapshot {
		return &v1.NodeSnapshot{Incarnation: incarnation, Sequence: sequence}
	}
	entry := func(state string, s *v1.NodeSnapshot) *registry.Entry {
		return &registry.Entry{Record: &historyv1.NodeRecord{State: state}, Snapshot: s}
	}
	for name, test := range map[string]struct {
		entry *registry.Entry
		want  bool
	}{
		"it beats":                     {entry(v1.NodeActive, snapshot("one", 6)), true},
		"it is silent":                 {entry(v1.NodeStale, snapshot("one", 5)), false},
		"it is offline":                {entry(v1.NodeOffline, snapshot("one", 6)), false},
		"its worker was started again": {entry(v1.NodeActive, snapshot("two", 6)), false},
		"it has registered, no more":   {entry(v1.NodeActive, nil), false},
		"it is unknown":                {nil, false},
	} {
		d := debtor{req: &historyv1.ExecuteRequest{Incarnation: "one"}, first: snapshot("one", 5)}
		if got := d.lives(test.entry); got != test.want {
			t.Errorf("%s: it lives on: %v", name, got)
		}
	}
}
