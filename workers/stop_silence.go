package workers

import (
	"sync"
	"time"
)

const (
	// stopSilence is how long Temporal may acknowledge no heartbeat of a stopping node until the node says what it waits for.
	stopSilence = 6 * time.Second
	// silencePoll is the interval at which a stopping node checks that.
	silencePoll = time.Second
)

// watchSilence logs what a stopping node waits for if Temporal does not answer, until the returned function is called.
func (n *Node) watchSilence() (end func()) {
	if !n.registered {
		return func() {}
	}
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		ticker := time.NewTicker(silencePoll)
		defer ticker.Stop()
		for n.presence.Silence() < stopSilence {
			select {
			case <-ended:
				return
			case <-ticker.C:
			}
		}
		n.silenced.Do(func() {
			n.cfg.Logger.Warn("Temporal does not answer, so the stop takes longer: tasks that drain end with their leases at the latest, and their ends cannot be reported",
				"silentFor", n.presence.Silence().Round(time.Second))
		})
	})
	return func() {
		close(ended)
		watch.Wait()
	}
}
