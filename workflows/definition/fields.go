package definition

import (
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// Timeout returns the longest time that one attempt of a task may run; 0 means no limit. Here and below, a duration that Check
// refuses counts as 0.
func Timeout(task *v1.TaskDefinition) time.Duration { return duration(task.GetTimeout()) }

// HeartbeatTimeout returns how long the node of a task's attempt may be silent; 0 means the default of the run.
func HeartbeatTimeout(task *v1.TaskDefinition) time.Duration {
	return duration(task.GetHeartbeatTimeout())
}

// StopGrace returns how long the program of a task may take to end after its stop signal; 0 means the default of the node.
func StopGrace(task *v1.TaskDefinition) time.Duration { return duration(task.GetStop().GetGrace()) }

// Deadline returns the longest time that a task may take, including all attempts and waits; 0 means no limit.
func Deadline(task *v1.TaskDefinition) time.Duration { return duration(task.GetDeadline()) }

// RunDeadline returns the longest time that a run may take; 0 means no limit.
func RunDeadline(def *v1.Definition) time.Duration { return duration(def.GetDeadline()) }

// ExpectedWithin returns how long a task usually takes at most; 0 means any time.
func ExpectedWithin(task *v1.TaskDefinition) time.Duration { return duration(task.GetExpectedWithin()) }

// RunExpectedWithin returns how long a run usually takes at most; 0 means any time.
func RunExpectedWithin(def *v1.Definition) time.Duration { return duration(def.GetExpectedWithin()) }

// CacheTTL returns the maximum age of a cached result of a task; 0 means any age.
func CacheTTL(task *v1.TaskDefinition) time.Duration { return duration(task.GetCache().GetTtl()) }

// ArtifactsKeep returns how long the files that a task leaves are kept; 0 means as long as the other results of the run.
func ArtifactsKeep(a *v1.Artifacts) time.Duration { return duration(a.GetKeep()) }

// Jitter returns the longest delay of a start of a schedule; 0 means no delay.
func Jitter(s *v1.ScheduleDefinition) time.Duration { return duration(s.GetJitter()) }

func duration(text string) time.Duration {
	d, err := parseDuration(text)
	if err != nil {
		return 0
	}
	return d
}

var (
	errNoDuration = errors.New("not a duration")
	errNegative   = errors.New("negative")
)

// parseDuration parses the durations of time.ParseDuration with optional leading days, such as "1d12h".
func parseDuration(s string) (time.Duration, error) {
	s = strings.TrimSpace(s)
	if s == "" || s == "0" {
		return 0, nil
	}
	var total float64
	rest := s
	if days, after, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
			return 0, errNoDuration
		}
		total, rest = n*float64(24*time.Hour), after
	}
	var sum time.Duration
	if rest != "" {
		var err error
		if sum, err = time.ParseDuration(rest); err != nil {
			return 0, errNoDuration
		}
	}
	switch total += float64(sum); {
	case total < 0 || sum < 0:
		return 0, errNegative
	case total >= math.MaxInt64:
		return 0, errNoDuration
	case rest == s:
		return sum, nil // exact; a float may not be
	}
	return time.Duration(total), nil
}

// spokenDuration matches an amount and a unit in everyday form.
var spokenDuration = lazyPattern(`^\s*([0-9]+)\s*([a-z]+)[\s,]*`)

// spokenUnits has the units of durations in everyday form, without the s of a plural.
var spokenUnits = map[string]string{
	"ms": "ms", "msec": "ms", "milli": "ms", "millisecond": "ms", "s": "s", "sec": "s", "second": "s", "m": "m", "min": "m", "minute": "m",
	"h": "h", "hr": "h", "hour": "h", "d": "d", "day": "d", "w": "w", "wk": "w", "week": "w",
}

// meantDuration returns the correct form of a duration such as "10 min" or 1w, or "" if it is not one.
func meantDuration(text string) string {
	var meant strings.Builder
	for rest := strings.ToLower(strings.TrimSpace(text)); rest != ""; {
		parts := spokenDuration().FindStringSubmatch(rest)
		if parts == nil {
			return ""
		}
		rest = rest[len(parts[0]):]
		amount, err := strconv.ParseInt(parts[1], 10, 32)
		if err != nil {
			return ""
		}
		unit := cmp.Or(spokenUnits[parts[2]], spokenUnits[strings.TrimSuffix(parts[2], "s")])
		if unit == "" {
			return ""
		}
		if unit == "w" {
			amount, unit = 7*amount, "d"
		}
		meant.WriteString(strconv.FormatInt(amount, 10) + unit)
	}
	if _, err := parseDuration(meant.String()); err != nil {
		return ""
	}
	return meant.String()
}
