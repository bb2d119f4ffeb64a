package executor

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A lease begins at the latest renewal, in whatever order the renewals arrive.
func TestLeaseBeginsAtTheLatestRenewal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		begin, now := rapid.Int64Range(0, 1000), Now()
		newest := begin.Draw(t, "begin")
		l := NewLease(now+Instant(newest), time.Hour, 2*time.Hour)
		for _, at := range rapid.SliceOf(begin).Draw(t, "news") {
			l.Renew(now + Instant(at))
			newest = max(newest, at)
		}
		if l.StopAt() != now+Instant(newest).Add(time.Hour) || l.KillAt() != now+Instant(newest).Add(2*time.Hour) {
			t.Fatalf("stops after %v, is killed after %v, though it began at %d", l.StopAt().Sub(now), l.KillAt().Sub(now), newest)
		}
	})
}

func TestLeaseExpiresAndStaysLost(t *testing.T) {
	t.Parallel()
	l := NewLease(Now(), time.Hour, 2*time.Hour)
	if l.Lost() || l.Over() {
		t.Error("a fresh lease is lost")
	}
	l = NewLease(Now().Add(-time.Hour), time.Hour, 2*time.Hour)
	if !l.Lost() || l.Over() {
		t.Errorf("after its stop time: lost %v, over %v", l.Lost(), l.Over())
	}
	l = NewLease(Now().Add(-2*time.Hour), time.Hour, 2*time.Hour)
	if !l.Lost() || !l.Over() {
		t.Errorf("after its end: lost %v, over %v", l.Lost(), l.Over())
	}
	l = NewLease(Now().Add(-time.Hour), time.Hour, 2*time.Hour)
	if l.Renew(Now()); !l.Lost() {
		t.Error("a lost lease came back")
	}
	var none *Lease
	none.Renew(Now())
	if none.Lost() || none.Over() || none.KillAt() != Never || none.StopAt() != Never {
		t.Error("no lease ends")
	}
}

// AwaitKill waits for the grace period, but not beyond the lease.
func TestAwaitKillEndsWithGracePeriodOrLease(t *testing.T) {
	t.Parallel()
	const long = time.Hour
	lease := func(left time.Duration) *Lease { return NewLease(Now(), long, left) }
	for name, test := range map[string]struct {
		grace time.Duration
		left  time.Duration // remaining lease; 0 means no lease
		least time.Duration
	}{
		"grace":            {grace: 50 * time.Millisecond, least: 50 * time.Millisecond},
		"no grace":         {},
		"grace below":      {grace: 50 * time.Millisecond, left: long, least: 50 * time.Millisecond},
		"lease below":      {grace: long, left: 50 * time.Millisecond, least: 50 * time.Millisecond},
		"lease was over":   {grace: long, left: -long},
		"grace was before": {grace: -long, left: long},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, start := Ending{Grace: test.grace}, Now()
			if test.left != 0 {
				a.Lease = lease(test.left)
			}
			if !a.AwaitKill(nil) {
				t.Error("it says that all is done")
			}
			if took := Now().Sub(start); took < test.least || took > long/2 {
				t.Errorf("took %v", took)
			}
		})
	}
	t.Run("done before", func(t *testing.T) {
		t.Parallel()
		done := make(chan struct{})
		time.AfterFunc(20*time.Millisecond, func() { close(done) })
		if (Ending{Grace: long}).AwaitKill(done) {
			t.Error("it does not notice that all is done")
		}
	})
	t.Run("grace ended early", func(t *testing.T) {
		t.Parallel()
		ended := make(chan struct{})
		time.AfterFunc(20*time.Millisecond, func() { close(ended) })
		if !(Ending{Grace: long, EndGrace: ended}).AwaitKill(nil) {
			t.Error("it says that all is done")
		}
	})
	t.Run("renewed meanwhile", func(t *testing.T) {
		t.Parallel()
		l := lease(100 * time.Millisecond)
		start := Now()
		l.Renew(start.Add(200 * time.Millisecond))
		(Ending{Grace: long, Lease: l}).AwaitKill(nil)
		if took := Now().Sub(start); took < 300*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestLiftedLeaseNeverEnds(t *testing.T) {
	t.Parallel()
	l, lost := NewLease(Now(), time.Hour, 2*time.Hour), NewLease(Now().Add(-time.Hour), time.Hour, 2*time.Hour)
	if !l.Lift() || lost.Lift() || !(*Lease)(nil).Lift() {
		t.Error("a lost lease was lifted, or another one was not")
	}
	if l.Renew(Now().Add(-3 * time.Hour)); l.Lost() || l.Over() || l.StopAt() != Never || l.KillAt() != Never || !lost.Lost() {
		t.Error("the lifted lease ends, or the lost one does not")
	}
}
