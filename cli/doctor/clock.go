package doctor

import (
	"context"
	"time"
)

const (
	// clockNotice is the difference between two clocks that is worth a warning. Times in lists and logs are then visibly wrong.
	clockNotice = 3 * time.Second
	// clockLimit is the difference at which things fail: nodes seem silent, and tokens and certificates expired.
	clockLimit = 30 * time.Second
	// leaderInterval is how old the newest heartbeat of a live leader may be.
	leaderInterval = 8 * time.Second
)

// checkClock compares the clock of this machine with that of the gateway, or of Temporal if this is the machine of a gateway.
func (e *examination) checkClock(ctx context.Context) Finding {
	if e.Role != RoleGateway {
		if e.skew == nil {
			return skipped("%v", errNoGateway)
		}
		return judgeClock("the gateway", *e.skew)
	}
	leader, beat, err := e.leader(ctx)
	switch {
	case err != nil:
		return skipped("%v", err)
	case leader == nil:
		return skipped("no gateway runs whose heartbeats show the time of Temporal")
	}
	return judgeClock("Temporal", beatSkew(time.Now(), beat))
}

// beatSkew returns how far the clock that stamped a heartbeat of the live leader is ahead. It is 0 if the clocks may agree.
func beatSkew(now, beat time.Time) time.Duration {
	switch age := now.Sub(beat); {
	case age < 0:
		return -age
	case age > leaderInterval:
		return leaderInterval - age
	}
	return 0
}

func judgeClock(other string, ahead time.Duration) Finding {
	remedy := "synchronize the clocks, for example with chrony or systemd-timesyncd"
	size, word := ahead.Abs().Round(time.Second), "behind"
	if ahead < 0 {
		word = "ahead of"
	}
	switch {
	case size >= clockLimit:
		return failed(remedy, "the clock of this machine is %s %s the clock of %s", size, word, other)
	case size >= clockNotice:
		return warning(remedy, "the clock of this machine is %s %s the clock of %s", size, word, other)
	}
	return ok("the clock agrees with that of %s", other)
}
