package timeline

import (
	"testing"
	"time"
)

func TestLaneCountsEndedBars(t *testing.T) {
	lane := NewLane(Scale{From: begin, To: begin.Add(4 * time.Second), Cells: 4})
	for i, state := range []string{"completed", "completed", "dead_letter", "running"} {
		lane.Add(Bar{State: state, Spans: []Span{{Kind: Run, From: begin, To: begin.Add(time.Duration(i) * time.Second)}}})
	}
	if got := lane.Ended(false); got[0] != 1 || got[1] != 2 || got[3] != 2 {
		t.Errorf("ended well: %v", got)
	}
	if got := lane.Ended(true); got[1] != 0 || got[2] != 1 || got[3] != 1 {
		t.Errorf("failed: %v", got)
	}
	if got := lane.Covers(Runs); got[0] != 4 || got[3] != 1 {
		t.Errorf("run: %v", got)
	}
}
