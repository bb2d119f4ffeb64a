package placement

import "time"

// notice is why the requests of a class wait, and when a change of it is reported to their runs.
type notice struct {
	reason     string
	reasonAt   time.Time // when reason was built
	reported   string    // reason that was reported to all requests except the fresh ones
	reportAt   time.Time // earliest report of a change of wording
	interval   time.Duration
	impossible bool // no present node could ever run the class
	outdated   bool // the fleet has changed since reason was built
}

// setImpossible records whether some node could ever run the class. It returns false if that was reported
// before.
func (n *notice) setImpossible(impossible bool, interval time.Duration, now time.Time) bool {
	if n.reported != "" && n.impossible == impossible {
		return false
	}
	n.impossible = impossible
	n.interval, n.reportAt = interval, now
	return true
}

// set stores a new reason.
func (n *notice) set(reason string, now time.Time) {
	n.reason, n.reasonAt, n.outdated = reason, now, false
}

// isDue reports whether a change of the fleet must be reported now.
func (n *notice) isDue(now time.Time) bool { return n.outdated && !now.Before(n.reportAt) }

// report marks the reason as reported, and doubles the time until the next report. It returns false
// if the reason was reported before.
func (n *notice) report(now time.Time) bool {
	if n.reason == n.reported {
		return false
	}
	n.reported, n.reportAt = n.reason, now.Add(n.interval)
	n.interval = min(2*n.interval, longestReasonInterval)
	return true
}

// clear forgets the reason of a class whose requests no longer wait.
func (n *notice) clear() { *n = notice{} }
