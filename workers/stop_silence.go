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
	// cutOffSilence is how long Temporal may acknowledge no heartbeat of a node until it counts as away. One heartbeat may be late.
	cutOffSilence = 3500 * time.Millisecond
	// cutOffTimeout is how long a stopping node that restarts waits for an answer of Temporal while that counts as away.
	cutOffTimeout = 500 * time.Millisecond
	// cutOffPoll is the interval at which a stopping node checks whether it is cut off.
	cutOffPoll = 100 * time.Millisecond
)

// awaitAnswer waits for something that only Temporal could answer, until the node is cut off.
func (n *Node) awaitAnswer(answered <-chan struct{}) {
	for !n.isCutOff() {
		select {
		case <-answered:
			return
		case <-time.After(cutOffPoll):
		}
	}
}

// isCutOff reports whether Temporal counts as away, so that a node that restarts waits for nothing that only Temporal could answer:
// the leases of the attempts that it keeps run, and the next worker is to come before their end.
func (n *Node) isCutOff() bool { return n.keepsAttempts() && n.presence.Silence() > cutOffSilence }

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
