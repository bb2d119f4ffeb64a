package taskrunner

import "time"

// terms are the times of an attempt. All follow from its heartbeat time-out,
// after which the server gives the task to another node.
//
//	sent: the newest acknowledged beat
//	│    beat     beat     beat        0.6          0.8           1
//	├────┼────────┼────────┼───────────┼────────────┼─────────────┤
//	                                   SIGTERM      SIGKILL       starts elsewhere
type terms struct {
	// beat is the time between heartbeats, again after one that was not acknowledged.
	beat, again time.Duration
	// answer is how long a heartbeat may take.
	answer time.Duration
	// stop and kill are the ends of the lease, from when a beat was sent.
	stop, kill time.Duration
}

// defaultHeartbeatTimeout is for an activity that has none.
const defaultHeartbeatTimeout = 15 * time.Second

// With a long heartbeat time-out the server is nevertheless asked often.
const longestAgain, longestAnswer = 2 * time.Second, 10 * time.Second

// termsOf takes the heartbeat time-out of an attempt, and the longest time
// between its heartbeats that the node wants.
func termsOf(timeout, interval time.Duration) terms {
	if timeout <= 0 {
		timeout = defaultHeartbeatTimeout
	}
	if interval <= 0 {
		interval = timeout
	}
	return terms{
		beat:   min(interval, timeout/5),
		again:  min(timeout/30, longestAgain),
		answer: min(timeout/6, longestAnswer),
		stop:   timeout * 6 / 10,
		kill:   timeout * 8 / 10,
	}
}
