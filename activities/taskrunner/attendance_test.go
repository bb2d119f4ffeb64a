package taskrunner

import (
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/heartbeat"
)

// attended returns an attendance of the activity "one", and whether it counts as lasting.
func attended(lasting bool) *attendance {
	return newAttendance(minuteActivity("one"), &recoveryFile{}, func() {}, func() bool { return lasting })
}

// minuteActivity returns an activity with a token and a heartbeat time-out of a minute.
func minuteActivity(token string) activityRef {
	return activityRef{Activity: heartbeat.Activity{ID: token}, token: []byte(token), heartbeat: time.Minute}
}

func running() error { return nil }

// When the server does not know the activity of a heartbeat, the attempt ends, unless the activity has left it, another one has
// replaced the activity, or the attempt is lasting.
func TestAttendanceTellsWhyAnActivityIsGone(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lasting bool
		before  func(w *attendance)
		want    error
		renewed bool
	}{
		"attended":   {false, func(*attendance) {}, heartbeat.ErrGone, false},
		"lasting":    {true, func(*attendance) {}, errDetached, false},
		"detached":   {false, func(w *attendance) { w.detach(time.Minute, running) }, errDetached, true},
		"reattached": {false, func(w *attendance) { w.reattach(minuteActivity("two")) }, errReattached, false},
	}
	for name, test := range tests {
		w := attended(test.lasting)
		of, _ := w.sender()
		test.before(w)
		killAt := w.lease.KillAt()
		if err := w.gone(of.number); err != test.want || w.lease.KillAt() > killAt != test.renewed {
			t.Errorf("%s: got %v, renewed %t; want %v, %t", name, err, w.lease.KillAt() > killAt, test.want, test.renewed)
		}
		if _, released := w.sender(); released != (test.want == errDetached) {
			t.Errorf("%s: released is %t", name, released)
		}
	}
}

// A detached attempt keeps its answer until another activity may no longer fetch it.
func TestAttendanceKeepsTheAnswerOfADetachedAttempt(t *testing.T) {
	t.Parallel()
	w := attended(false)
	if !w.detach(time.Hour, running) || !w.isUnattended() {
		t.Fatal("it is not detached")
	}
	unattended, until := w.end(nil, errLetGo)
	if !unattended || !w.isOver() || until.Sub(executor.Now()) < 50*time.Minute {
		t.Errorf("unattended %t, over %t, until %v", unattended, w.isOver(), until)
	}
	if w.detach(time.Minute, running) {
		t.Error("an ended attempt was detached")
	}
}
