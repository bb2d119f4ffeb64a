package taskrunner

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTermsOfFifteenSeconds(t *testing.T) {
	t.Parallel()
	want := terms{
		beat: 3 * time.Second, again: 500 * time.Millisecond, answer: 2500 * time.Millisecond,
		stop: 9 * time.Second, kill: 12 * time.Second,
	}
	for _, got := range []terms{termsOf(15*time.Second, 5*time.Second), termsOf(0, 5*time.Second), termsOf(0, 0)} {
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
		if interval > 0 && s.beat > interval || s.beat <= 0 || s.again <= 0 || s.answer <= 0 {
			t.Fatalf("%+v", s)
		}
		if two := s.beat + 2*(s.answer+s.again); two > s.stop {
			t.Fatalf("two beats without an answer take %v, and the lease is lost after %v", two, s.stop)
		}
		if s.stop >= s.kill || s.kill >= timeout {
			t.Fatalf("%+v of %v", s, timeout)
		}
	})
}
