package cli

import (
	"testing"
)

// TestSecondSignalFiresOnce fires what the second signal does once.
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
