package workertest

import (
	"testing"
	"time"
)

// Limit bounds how long a test waits for an event that must happen. It far exceeds the time that anything takes, so that
// no test fails on a slow machine.
const Limit = 5 * time.Minute

// Soon bounds the time of a cancel. It far exceeds the usual time (well below a second), and is far below the time after
// which the run would end otherwise.
const Soon = 2 * time.Minute

// Eventually waits until a condition holds. If it does not hold within [Limit], Eventually fails the test and names what it
// has waited for.
func Eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(Limit)
	for pause := time.Millisecond; !holds(); pause = nextPause(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(pause)
	}
}

// nextPause returns the pause before the next look at a condition. Most looks are calls of the server, which slow down
// whatever a test waits for.
func nextPause(pause time.Duration) time.Duration { return min(2*pause, 200*time.Millisecond) }
