package runview

import (
	"testing"
	"time"
)

func TestPauseGrowsWithSlowPolls(t *testing.T) {
	p := &Poller{interval: 100 * time.Millisecond}
	for _, test := range []struct{ usual, last, want time.Duration }{
		{0, 0, 100 * time.Millisecond},
		{time.Millisecond, 700 * time.Millisecond, 100 * time.Millisecond},
		{40 * time.Millisecond, 50 * time.Millisecond, 400 * time.Millisecond},
		{500 * time.Millisecond, 600 * time.Millisecond, time.Second},
		{2 * time.Second, 3 * time.Second, 3 * time.Second},
	} {
		if got := p.pause(test.usual, test.last); got != test.want {
			t.Errorf("usual %v, last %v: %v, not %v", test.usual, test.last, got, test.want)
		}
	}
}
