package web

import (
	"testing"
	"time"
)

func TestPauseGrowsWithReadTimeUpToABound(t *testing.T) {
	for look, want := range map[time.Duration]time.Duration{
		time.Millisecond:       pollInterval,
		40 * time.Millisecond:  600 * time.Millisecond,
		100 * time.Millisecond: longestPause,
		time.Second:            4 * time.Second,
	} {
		if got := pauseAfter(look, pollInterval); got != want {
			t.Errorf("after a look of %s: %s, want %s", look, got, want)
		}
	}
}
