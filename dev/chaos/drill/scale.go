package drill

import "time"

// Scale sets the lengths of a drill's time-outs.
type Scale struct {
	Name string
	// Heartbeat is the heartbeat time-out of attempts, and how long a node may be silent.
	Heartbeat time.Duration
	// Short is an interruption that running tasks must not notice, and Long one that no attempt survives.
	Short, Long time.Duration
	// Outage is the minimum length of a store outage.
	Outage time.Duration
	// Slack is how long a step may take beyond its time-outs.
	Slack time.Duration
	// Limit bounds steps that have no time-out of their own.
	Limit time.Duration
	// Drains is the number of drains in the scenario drains.
	Drains int
	// Instances is the size of the large fan-out. It exceeds what a run carries itself.
	Instances int
	// Rounds is how often worker and container engine are killed.
	Rounds int
	// SessionRounds is how often each part that machines and sessions depend on is killed.
	SessionRounds int
}

// The known scales. Full uses the default time-outs, and the slack that is promised for an idle machine. Fast is for
// machines that are busy with other work.
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

// patient returns the scale with time-outs long enough that interruptions go unnoticed even on a busy machine.
func (s Scale) patient() Scale {
	if s.Name != Full.Name {
		s.Heartbeat = 5 * s.Heartbeat
	}
	return s
}
