package cli

import (
	"testing"
)

// TestSecondSignalFiresOnce checks that the action of the second signal runs only once.
func TestSecondSignalFiresOnce(t *testing.T) {
	var h secondSignal
	if h.fire() {
		t.Error("there was something to do")
	}
	done := 0
	h.set(func() { done++ })
	if !h.fire() || h.fire() || done != 1 {
		t.Errorf("done %d times", done)
	}
}
