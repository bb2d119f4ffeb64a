package election

import (
	"cmp"
	"fmt"
	"time"
)

// The defaults and bounds of a Timing.
const (
	DefaultLease   = 5 * time.Second
	DefaultRenewal = time.Second
	MinLease       = 2 * time.Second
	MaxLease       = time.Minute
	MinRenewal     = 100 * time.Millisecond
	// renewalsPerLease is the least number of renewals in a lease, so that one that is lost does not end the leadership.
	renewalsPerLease = 3
)

// Timing sets how the leadership is kept. The zero Timing has the defaults.
type Timing struct {
	// Lease is how long after its last heartbeat a leader is replaced. The server measures it.
	Lease time.Duration
	// Renewal is the time between two heartbeats of the leader.
	Renewal time.Duration
}

// WithDefaults returns the timing with defaults in place of zero values.
func (t Timing) WithDefaults() Timing {
	return Timing{cmp.Or(t.Lease, DefaultLease), cmp.Or(t.Renewal, DefaultRenewal)}
}

// Validate checks a timing with its defaults.
func (t Timing) Validate() error {
	switch t = t.WithDefaults(); {
	case t.Lease < MinLease || t.Lease > MaxLease:
		return fmt.Errorf("the lease of the leader is %s; it must be %s to %s", t.Lease, MinLease, MaxLease)
	case t.Renewal < MinRenewal:
		return fmt.Errorf("the renewal of the leader's lease is %s; it must be at least %s", t.Renewal, MinRenewal)
	case t.Renewal*renewalsPerLease > t.Lease:
		return fmt.Errorf("the leader renews its lease of %s every %s; the renewal must be at most a third of the lease, so that one that is lost does not end it", t.Lease, t.Renewal)
	}
	return nil
}

// terms holds the durations of one leadership. They follow from the time-out of the server, and not from the settings of this
// process alone, so that processes with different settings never lead at the same time.
//
//	sent: the newest acknowledged beat
//	│   beat    beat    beat     0.8         1
//	├────┼───────┼───────┼────────┼──────────┤
//	                              stops      another process leads
type terms struct {
	// lease is how long the leadership lasts after its last acknowledged beat was sent. The server counts from when it received
	// that beat, which is later. The difference is the time left for stopping.
	lease time.Duration
	// renewal is the time between two beats.
	renewal time.Duration
	// beat bounds one beat, so that a lost one leaves time for another.
	beat time.Duration
}

// termsOf returns the durations of a leadership whose server allows silence for timeout.
func termsOf(timeout, renewal time.Duration) terms {
	return terms{lease: timeout * 8 / 10, renewal: min(renewal, timeout/renewalsPerLease), beat: timeout * 3 / 10}
}
