package taskrunner

import "time"

// terms holds the durations of an attempt. They all follow from its heartbeat time-out, after which the server gives the
// task to another node.
//
//	sent: the newest acknowledged beat
//	│    beat     beat     beat        0.6          0.8           1
//	├────┼────────┼────────┼───────────┼────────────┼─────────────┤
//	                                   SIGTERM      SIGKILL       starts elsewhere
type terms struct {
	// beat is the time between heartbeats, and again the time to the next try after an unacknowledged one.
	beat, again time.Duration
	// answer bounds one heartbeat call.
	answer time.Duration
	// stop and kill are the ends of the lease, counted from the sending of a heartbeat.
	stop, kill time.Duration
}

// defaultHeartbeatTimeout applies to an activity without a heartbeat time-out.
const defaultHeartbeatTimeout = 15 * time.Second

// longestAgain and longestAnswer cap terms, so that the server is asked often even under a long heartbeat time-out.
const longestAgain, longestAnswer = 2 * time.Second, 10 * time.Second

// termsOf returns the terms for a heartbeat time-out of an attempt and the longest time between heartbeats that the node
// allows. 0 means the default time-out and no upper bound on the interval.
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
