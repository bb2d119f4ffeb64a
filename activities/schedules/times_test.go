package schedules_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.temporal.io/server/service/worker/scheduler"

	"switchyard/activities/schedules"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/cron"
)

// temporalSpec returns a schedule's times as Temporal computes them.
func temporalSpec(t *testing.T, s *v1.ScheduleDefinition) *scheduler.CompiledSpec {
	t.Helper()
	unlimited := func() int { return 0 }
	spec, err := scheduler.NewSpecBuilder(unlimited, unlimited).NewCompiledSpec(schedules.SpecOf(s))
	if err != nil {
		t.Fatalf("%v: %v", s, err)
	}
	return spec
}

// temporalTimes returns the times of a schedule in a span.
func temporalTimes(t *testing.T, spec *scheduler.CompiledSpec, from, to time.Time) (times []time.Time) {
	t.Helper()
	for at := from.Add(-time.Second); ; {
		next, err := spec.GetNextTime("", at)
		if err != nil {
			t.Fatal(err)
		}
		if at = next.Nominal; at.IsZero() || !at.Before(to) {
			return times
		}
		times = append(times, at)
	}
}

// cronTimes returns the times of an expression in a span as package cron computes them, which compares them with an oracle.
func cronTimes(t *testing.T, text string, zone *time.Location, from, to time.Time) (times []time.Time) {
	t.Helper()
	e, err := cron.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for at := e.Next(from.Add(-time.Second), zone); !at.IsZero() && at.Before(to); at = e.Next(at, zone) {
		times = append(times, at.UTC())
	}
	return times
}

// TestTemporalStartsAtTheTimesOfTheExpression compares the days around each change of the clocks, and some other ones.
func TestTemporalStartsAtTheTimesOfTheExpression(t *testing.T) {
	t.Parallel()
	expressions := []string{
		"30 2 * * *", "*/15 2 * * *", "0 0 * * *", "*/20 1-3 * * *", "0 * * * *", "*/15 * * * *", "0 3 * * SUN", "59 23 28-31 * *", "0 5 * * 1-7", "0 1 * 3,4,9-11 0,7",
		"5/10 22 * * 5-7", "30 */6 1,15 * *",
	}
	zones := []string{
		"Europe/Berlin", "America/New_York", "UTC", "America/Havana", "Asia/Kathmandu", "Africa/Cairo", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca",
		"Pacific/Apia", "Atlantic/Azores", "Asia/Jerusalem", "Pacific/Auckland", "Europe/London",
	}
	for i, name := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{expressions[i%len(expressions)], expressions[(i+5)%len(expressions)], expressions[1]} {
			spec := temporalSpec(t, &v1.ScheduleDefinition{Cron: []string{text}, Timezone: name})
			from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			if name == "Pacific/Apia" {
				from = time.Date(2009, 1, 1, 0, 0, 0, 0, time.UTC)
			}
			for end := from.AddDate(5, 0, 0); from.Before(end); {
				_, change := from.In(zone).ZoneBounds()
				next := from.AddDate(0, 4, 0)
				if !change.IsZero() && change.Before(next) && change.After(from) {
					next = change
				}
				a, b := next.UTC().Truncate(24*time.Hour).AddDate(0, 0, -1), next.UTC().AddDate(0, 0, 2)
				if got, want := temporalTimes(t, spec, a, b), cronTimes(t, text, zone, a, b); !slices.Equal(got, want) {
					t.Errorf("%s in %s from %s: Temporal has %v, want %v", text, name, a.Format(time.DateOnly), got, want)
				}
				from = next.AddDate(0, 0, 3)
			}
		}
	}
}

// TestScheduleOnADayOfAClockChange checks what a stored schedule shows, lists and starts.
func TestScheduleOnADayOfAClockChange(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	store(t, "name: clocks\nschedule: { cron: ['*/15 2 * * *', '30 4 * 1 MON-FRI', '@every 9000h'], timezone: Europe/Berlin, paused: true, input: { brief: true } }\ntasks: { a: { type: shell, spec: { command: x } } }\n")
	crons := []string{"*/15 2 * * *", "30 4 * 1 1-5", "@every 9000h"}
	if s := get(t, "clocks"); !slices.Equal(s.GetCron(), crons) || s.GetTimezone() != "Europe/Berlin" {
		t.Errorf("it is %v", s)
	}
	testneeds.Await(t, "the list shows its times", func() bool {
		listed, err := all().List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(listed, func(s *v1.Schedule) bool {
			return s.GetName() == "clocks" && slices.Equal(s.GetCron(), crons) && s.GetTimezone() == "Europe/Berlin"
		})
	})
	for day, want := range map[string]string{
		"2026-03-29": "[03:00:00+02:00]", "2026-10-25": "[02:00:00+02:00 02:15:00+02:00 02:30:00+02:00 02:45:00+02:00]", "2025-10-26": "[02:00:00+02:00 02:15:00+02:00 02:30:00+02:00 02:45:00+02:00]",
	} {
		from, err := time.ParseInLocation(time.DateOnly, day, zone)
		if err != nil {
			t.Fatal(err)
		}
		to := from.AddDate(0, 0, 1)
		next, name, err := all().Times(t.Context(), "clocks", from, 8)
		if err != nil || name != "Europe/Berlin" || len(next) != 8 {
			t.Fatalf("%s: %v, %s, %v", day, next, name, err)
		}
		next = slices.DeleteFunc(next, func(at time.Time) bool { return !at.Before(to) })
		filled, _, err := all().Backfill(t.Context(), "clocks", from, to, v1.OverlapAllow)
		if err != nil {
			t.Fatal(err)
		}
		for what, times := range map[string][]time.Time{"next": next, "backfill": filled} {
			var shown []string
			for _, at := range times {
				shown = append(shown, at.In(zone).Format("15:04:05-07:00"))
			}
			if got := fmt.Sprint(shown); got != want {
				t.Errorf("%s on %s: %s, want %s", what, day, got, want)
			}
		}
	}
	testneeds.Await(t, "the runs of the backfill have started", func() bool { return get(t, "clocks").GetStarted() == 9 })
}
