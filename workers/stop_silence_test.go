package workers

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/activities/presence"
)

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
