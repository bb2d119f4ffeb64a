package workers

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/activities/presence"
)

// TestNodeIsCutOff checks when a stopping node waits for Temporal no longer.
func TestNodeIsCutOff(t *testing.T) {
	for _, test := range []struct {
		silence time.Duration
		keeps   bool
		waits   time.Duration
	}{
		{0, true, cutOffSilence}, {3 * time.Second, true, 500 * time.Millisecond}, {time.Minute, true, 0},
		{time.Minute, false, time.Hour}, // it drains
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &Node{cfg: NodeConfig{KeepOnStop: test.keeps}, presence: presence.NewPresence(presence.PresenceOptions{}), registered: true}
			n.presence.Registered()
			time.Sleep(test.silence)
			answered := make(chan struct{})
			time.AfterFunc(time.Hour, func() { close(answered) })
			began := time.Now()
			n.awaitAnswer(answered)
			if waited := time.Since(began); waited < test.waits || waited > test.waits+cutOffPoll {
				t.Errorf("after %s of silence, a node that keeps attempts (%v) waited for %s, want %s", test.silence, test.keeps, waited, test.waits)
			}
			if n.isCutOff() != test.keeps {
				t.Errorf("cut off: %v", !test.keeps)
			}
		})
	}
}

// TestStoppingNodeSaysThatTemporalDoesNotAnswer checks that a node which drains and stops without an answer of Temporal says so once.
func TestStoppingNodeSaysThatTemporalDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		n := &Node{cfg: NodeConfig{Logger: slog.New(slog.NewTextHandler(&out, nil))}, presence: presence.NewPresence(presence.PresenceOptions{})}
		n.watchSilence()() // before the node is registered
		n.presence.Registered()
		n.registered = true
		for _, seconds := range []time.Duration{3, 6, 6} {
			end := n.watchSilence()
			time.Sleep(seconds * time.Second)
			end()
			if want := min(int(seconds/6), 1); strings.Count(out.String(), "Temporal does not answer") != want {
				t.Errorf("after %d s more: %s", seconds, out.String())
			}
		}
	})
}
