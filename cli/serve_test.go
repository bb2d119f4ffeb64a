package cli

import (
	"testing"
	"time"
)

// TestHurry does once what the second signal is to do.
func TestHurry(t *testing.T) {
	var h hurrying
	if h.hurry() {
		t.Error("there was something to do")
	}
	done := 0
	h.set(func() { done++ })
	if !h.hurry() || h.hurry() || done != 1 {
		t.Errorf("done %d times", done)
	}
}

func TestDrains(t *testing.T) {
	if (stackConfig{Nodes: []nodeConfig{{}}}).drains() {
		t.Error("a node without a drain time-out drains")
	}
	if !(stackConfig{Nodes: []nodeConfig{{}, {DrainTimeout: time.Second}}}).drains() {
		t.Error("a node with a drain time-out does not")
	}
}
