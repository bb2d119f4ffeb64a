package cron

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/dev/testneeds"
)

// oracleZones are zones whose clocks change at different hours, by half an hour, by a day, twice around Ramadan, or never.
var oracleZones = []string{
	"Africa/Cairo", "Africa/Casablanca", "America/Chicago", "America/Godthab", "America/Havana", "America/New_York", "America/Santiago",
	"America/Sao_Paulo", "America/Scoresbysund", "America/St_Johns", "Antarctica/Troll", "Asia/Beirut", "Asia/Gaza", "Asia/Jerusalem",
	"Asia/Kathmandu", "Asia/Kolkata", "Asia/Tehran", "Atlantic/Azores", "Australia/Adelaide", "Australia/Lord_Howe", "Australia/Sydney",
	"Europe/Athens", "Europe/Berlin", "Europe/Dublin", "Europe/London", "Europe/Moscow", "Pacific/Apia", "Pacific/Auckland", "Pacific/Chatham", "UTC",
}

var oracleExpressions = []string{
	"30 2 * * *", "*/15 2 * * *", "30 1 * * *", "0 0 * * *", "*/20 0-3 * * *", "0 * * * *", "*/15 * * * *", "7 * * * SUN", "45 23 * * *", "0 3 * * SAT,SUN",
	"0 1-2 25-31 10 *", "0 */2 * * *", "30 0 1 * *", "59 1 31 * *", "10 * 24-30 3,4,9-11 *", "5,50 * 15-31 * 5",
}

// oracle walks minute by minute from one time to another, and returns the starts of expressions on the clocks of a zone.
func oracle(all []Expression, zone *time.Location, from, to time.Time) [][]time.Time {
	starts := make([][]time.Time, len(all))
	shown := minuteOf(from.Add(-3*day), zone) // the latest minute that the clocks have shown
	for at := from.Add(-3 * day); at.Before(to); at = at.Add(time.Minute) {
		now := minuteOf(at, zone)
		for i, e := range all {
			starting := e.hasMinute(now)
			if e.hour != everyHour {
				starting = starting && now > shown
				for skipped := shown + 1; skipped < now && !starting; skipped++ {
					starting = e.hasMinute(skipped)
				}
			}
			if starting && !at.Before(from) {
				starts[i] = append(starts[i], at)
			}
		}
		shown = max(shown, now)
	}
	return starts
}

// minuteOf returns what the clocks of a zone show at a time, as minutes from 1970.
func minuteOf(at time.Time, zone *time.Location) int64 {
	_, offset := at.In(zone).Zone()
	return (at.Unix() + int64(offset)) / 60
}

// hasMinute reports whether the expression matches what the clocks show.
func (e Expression) hasMinute(shown int64) bool {
	return e.minute&(1<<(shown%60)) != 0 && e.hour&(1<<(shown/60%24)) != 0 && e.hasDay(time.Unix(shown*60, 0).UTC())
}

// ownTimes returns the results of Next.
func ownTimes(e Expression, zone *time.Location, from, to time.Time) (times []time.Time) {
	for at := e.Next(from.Add(-time.Second), zone); !at.IsZero() && at.Before(to); at = e.Next(at, zone) {
		times = append(times, at.UTC())
	}
	return times
}

// times returns the times of a calendar.
func (c Calendar) times(from, to time.Time) (times []time.Time) {
	for at := from.Truncate(day); at.Before(to); at = at.Add(day) {
		if c.Years != nil && !slices.Contains(c.Years, at.Year()) || c.Months&(1<<int(at.Month())) == 0 ||
			c.Days&(1<<at.Day()) == 0 || c.Weekdays&(1<<int(at.Weekday())) == 0 {
			continue
		}
		for _, h := range valuesOf(c.Hours) {
			for _, m := range valuesOf(c.Minutes) {
				if t := at.Add(time.Duration(60*h+m) * time.Minute); !t.Before(from) && t.Before(to) {
					times = append(times, t)
				}
			}
		}
	}
	return times
}

func checkAgainstOracle(t *testing.T, name string, texts []string, from, to time.Time) {
	t.Helper()
	zone := mustZone(t, name)
	var all []Expression
	for _, text := range texts {
		all = append(all, mustParse(t, text))
	}
	for i, want := range oracle(all, zone, from, to) {
		var compiled []time.Time
		for _, c := range all[i].Calendars(zone) {
			compiled = append(compiled, c.times(from, to)...)
		}
		slices.SortFunc(compiled, time.Time.Compare)
		for what, got := range map[string][]time.Time{"Next": ownTimes(all[i], zone, from, to), "Calendars": compiled} {
			if slices.Equal(got, want) {
				continue
			}
			k := 0
			for k < min(len(got), len(want)) && got[k].Equal(want[k]) {
				k++
			}
			t.Errorf("%s of %s in %s: %d times from %s, want %d: number %d is in %v, want %v", what, texts[i], name, len(got), from.Format(time.DateOnly), len(want), k, got[k:min(len(got), k+3)], want[k:min(len(want), k+3)])
		}
	}
}

// TestTimesEqualThoseOfTheOracle compares five years of all zones, of which Apia has the one without a day.
func TestTimesEqualThoseOfTheOracle(t *testing.T) {
	for i, name := range oracleZones {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			year := 2024
			if name == "Pacific/Apia" {
				year = 2009
			}
			// Each zone has its share of the expressions.
			texts := []string{oracleExpressions[1]}
			for k := i % 8; k < len(oracleExpressions); k += 8 {
				texts = append(texts, oracleExpressions[k])
			}
			checkAgainstOracle(t, name, texts, date(year, 1, 1), date(year+5, 1, 1))
		})
	}
}

// TestLongTimesEqualThoseOfTheOracle compares five years of every zone, with random expressions.
func TestLongTimesEqualThoseOfTheOracle(t *testing.T) {
	testneeds.Long(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	field := func(low, high int) string {
		a, b := low+random.IntN(high-low+1), low+random.IntN(high-low+1)
		return []string{"*", fmt.Sprint(a), fmt.Sprintf("%d-%d", min(a, b), max(a, b)), fmt.Sprintf("%d,%d", a, b), fmt.Sprintf("*/%d", max(a, 1))}[random.IntN(5)]
	}
	for _, name := range zones() {
		var texts []string
		for range 5 {
			texts = append(texts, strings.Join([]string{field(0, 59), field(0, 4), field(1, 31), field(1, 12), field(0, 7)}, " "))
		}
		year := firstYear + random.IntN(95)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkAgainstOracle(t, name, texts, date(year, 1, 1), date(year+5, 1, 1))
		})
	}
}
