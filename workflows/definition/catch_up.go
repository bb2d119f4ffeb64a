package definition

import (
	"cmp"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// The catch-up time of a schedule is how late a start may be that was missed while Temporal was away:
//
//   - Temporal decides: the catch-up time is the catch-up window of the Temporal Schedule (see PoliciesOf in
//     activities/schedules/spec.go). Gateways that are away miss nothing.
//   - A start within it happens once Temporal is back, under its original time. The overlap of the schedule decides what
//     happens to several of them.
//   - A later start never happens, unless a person backfills it. `schedules get` counts it as missed.
//   - Times during which the schedule was paused are neither made up for nor counted.

const (
	// MinCatchUp is the shortest catch-up time that Temporal accepts.
	MinCatchUp = 10 * time.Second
	// DefaultCatchUp is the catch-up time of a schedule without catchUp.
	DefaultCatchUp = time.Hour
)

// CatchUp returns how late a start of a schedule may be.
func CatchUp(s *v1.ScheduleDefinition) time.Duration {
	return cmp.Or(duration(s.GetCatchUp()), DefaultCatchUp)
}

// catchUp checks how late a start may be.
func (r scheduleRules) catchUp(text string, p *source.Path) {
	r.durationOr(text, p, "the minimum is 10s")
	if given, err := parseDuration(text); text != "" && err == nil && given < MinCatchUp {
		r.Add(r.locate(p), p, p.Local()+" is "+text+"; it must be 10s or more", "")
	}
}
