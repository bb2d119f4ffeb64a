package drill

import "time"

// Scale is how long the time-outs of a drill are.
type Scale struct {
	Name string
	// Heartbeat is the heartbeat time-out of attempts, and how long a node may be silent.
	Heartbeat time.Duration
	// Short is an interruption that running tasks must not notice, Long one that no attempt survives.
	Short, Long time.Duration
	// Outage is how long the store is away at least.
	Outage time.Duration
	// Slack is what a step may take beyond its time-outs.
	Slack time.Duration
	// Limit is how long something may take that has no time-out of its own.
	Limit time.Duration
	// Drains is the number of drains of the scenario that drains.
	Drains int
	// Instances is how many the large fan-out has: more than a run carries through itself.
	Instances int
	// Rounds is how often worker and container engine are killed.
	Rounds int
	// SessionRounds is how often each part is killed that machines and sessions need.
	SessionRounds int
}

// The known scales. At full length, time-outs are the defaults and the slack is
// what is promised for an idle machine; the fast one is for machines that do much
// else meanwhile.
var (
	Full = Scale{
		Name: "full", Heartbeat: 15 * time.Second, Short: 3 * time.Second, Long: time.Minute, Outage: time.Minute,
		Slack: 2 * time.Second, Limit: 3 * time.Minute, Drains: 100, Instances: 1500, Rounds: 50, SessionRounds: 20,
	}
	Fast = Scale{
		Name: "fast", Heartbeat: 6 * time.Second, Short: time.Second, Long: 14 * time.Second, Outage: 5 * time.Second,
		Slack: 40 * time.Second, Limit: 5 * time.Minute, Drains: 6, Instances: 600, Rounds: 3, SessionRounds: 5,
	}
)

// patient is the scale with time-outs that are long enough for scenarios in which
// nothing may notice an interruption, on a busy machine too.
func (s Scale) patient() Scale {
	if s.Name != Full.Name {
		s.Heartbeat = 5 * s.Heartbeat
	}
	return s
}
