package placement

import (
	"testing"
	"time"
)

func TestNoticeDoublesTheTimeBetweenReports(t *testing.T) {
	c := newClock()
	var n notice
	if !n.setImpossible(false, time.Second, c.now()) {
		t.Fatal("a new notice need not be reported")
	}
	for _, step := range []struct {
		reason string
		report bool
		wait   time.Duration
	}{{"one", true, time.Second}, {"one", false, time.Second}, {"two", true, 2 * time.Second}, {"three", true, 4 * time.Second}} {
		n.set(step.reason, c.now())
		if reported := n.report(c.now()); reported != step.report || n.reportAt.Sub(c.now()) != step.wait {
			t.Errorf("%s: reported %v, next in %v; want %v and %v", step.reason, reported, n.reportAt.Sub(c.now()), step.report, step.wait)
		}
	}
	if n.setImpossible(false, time.Second, c.now()) || !n.setImpossible(true, time.Second, c.now()) || !n.impossible {
		t.Error("only a change between possible and impossible must be reported at once")
	}
}
