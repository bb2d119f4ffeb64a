package workers

import (
	"testing"
	"time"
)

// TestServerWatchSeesGaps checks that a gap between two replies is an outage, and that the time before this process
// started the server is one too.
func TestServerWatchSeesGaps(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := &serverWatch{}
	for _, step := range []struct{ at, awayUntil time.Duration }{
		{0, -1}, {time.Second, -1}, {time.Second + serverGap, -1},
		{time.Minute, time.Minute}, {time.Minute + time.Second, time.Minute}, {time.Hour, time.Hour},
	} {
		w.hasAnswered(begin.Add(step.at))
		want := time.Time{}
		if step.awayUntil >= 0 {
			want = begin.Add(step.awayUntil)
		}
		if got := w.AwayUntil(); !got.Equal(want) {
			t.Errorf("after %v: away until %v, want %v", step.at, got, want)
		}
	}
	own := &serverWatch{awayUntil: begin}
	if own.hasAnswered(begin.Add(time.Second)); !own.AwayUntil().Equal(begin) {
		t.Errorf("its own server was away until %v", own.AwayUntil())
	}
}
