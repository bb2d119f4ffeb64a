package schedules_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/workflows/cron"
	"switchyard/workflows/names"
)

// timesOf returns the first times of a schedule at or after from, as Temporal computes them.
func timesOf(t *testing.T, id, expression, zone string, from time.Time, count int) []time.Time {
	t.Helper()
	e, err := cron.Parse(expression)
	if err != nil {
		t.Fatal(err)
	}
	_, err = temporalClient.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID: id, Paused: true, Spec: client.ScheduleSpec{CronExpressions: []string{e.String()}, TimeZoneName: zone},
		Action: &client.ScheduleWorkflowAction{ID: id, Workflow: names.RunWorkflow, TaskQueue: names.ControlQueue},
	})
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	times, _, err := all().Times(t.Context(), id, from, count)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return times
}

// own returns the first times of an expression at or after from, as this module computes them.
func own(t *testing.T, expression, zone string, from time.Time, count int) (times []time.Time) {
	t.Helper()
	e, err := cron.Parse(expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	location, err := cron.Zone(zone)
	if err != nil {
		t.Fatal(err)
	}
	for at := from.Add(-time.Nanosecond); len(times) < count; {
		if at = e.Next(at, location); at.IsZero() {
			break
		}
		times = append(times, at.UTC())
	}
	return times
}

// without returns the times that are more than two days away from any clock change in the zone. Around clock changes
// Temporal has rules of its own, which TestClocksThatChange covers.
func without(t *testing.T, times []time.Time, zone string) []time.Time {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(times), func(at time.Time) bool {
		_, before := at.Add(-48 * time.Hour).In(location).Zone()
		_, after := at.Add(48 * time.Hour).In(location).Zone()
		return before != after
	})
}

// until returns the times up to the last time of others.
func until(times, others []time.Time) []time.Time {
	if len(others) == 0 {
		return nil
	}
	return slices.DeleteFunc(times, func(t time.Time) bool { return t.After(others[len(others)-1]) })
}

// TestTimesAreThoseOfTemporal compares the times of typical expressions, in summer and in winter.
func TestTimesAreThoseOfTemporal(t *testing.T) {
	t.Parallel()
	expressions := []string{
		"30 2 * * *", "*/20 1-3 * * *", "0 0 * * *", "0 3 * * SUN", "59 23 28-31 * *", "0 0 29 2 *", "0 12 29 FEB MON", "0 9 8-14 * MON",
		"0 5 * * 1-7", "15,45 */6 1,15 */3 *", "0 0 1 1 *", "@weekly", "@hourly", "0 1 * 3,10,11 0,7", "5/10 22 * * 5-7", "0 0 31 * *",
	}
	zones := []string{"Europe/Berlin", "America/New_York", "UTC", "America/Havana", "Asia/Kathmandu", "Africa/Cairo"}
	for i, expression := range expressions {
		zone := zones[i%len(zones)]
		from := time.Date(2026, 2, 20, 11, 7, 0, 0, time.UTC)
		count := 300
		want := without(t, timesOf(t, fmt.Sprintf("table-%d", i), expression, zone, from, count), zone)
		if got := until(without(t, own(t, expression, zone, from, 2*count), zone), want); !slices.Equal(got, want) {
			k := 0
			for k < min(len(got), len(want)) && got[k].Equal(want[k]) {
				k++
			}
			t.Errorf("%s in %s: %d times, from number %d on %v; Temporal has %d, %v", expression, zone, len(got), k, got[k:min(len(got), k+3)], len(want), want[k:min(len(want), k+3)])
		}
	}
}

// TestTimesOfRandomExpressions compares the times of random cron expressions in random zones with those that Temporal computes.
func TestTimesOfRandomExpressions(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	field := func(low, high int) string {
		var parts []string
		for range 1 + random.IntN(3) {
			a, b := low+random.IntN(high-low+1), low+random.IntN(high-low+1)
			part := strconv.Itoa(a)
			switch random.IntN(4) {
			case 0:
				part = "*"
			case 1:
				part = fmt.Sprintf("%d-%d", min(a, b), max(a, b))
			}
			if random.IntN(3) == 0 {
				part += "/" + strconv.Itoa(1+random.IntN(high))
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, ",")
	}
	for i := range 15 {
		expression := strings.Join([]string{field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 7)}, " ")
		zone := []string{"Europe/Berlin", "America/New_York", "Australia/Sydney"}[random.IntN(3)]
		from := time.Date(2026, time.Month(1+random.IntN(12)), 1+random.IntN(28), random.IntN(24), random.IntN(60), 0, 0, time.UTC)
		want := without(t, timesOf(t, fmt.Sprintf("random-%d", i), expression, zone, from, 100), zone)
		if got := until(without(t, own(t, expression, zone, from, 400), zone), want); !slices.Equal(got, want) {
			t.Errorf("seed %d: %s in %s from %s: %v; Temporal has %v", seed, expression, zone, from, got[:min(len(got), 5)], want[:min(len(want), 5)])
		}
	}
}

// TestClocksThatChange checks what the language guide says about days with clock changes against Temporal: skipped times do
// not occur, and repeated times occur at least once.
func TestClocksThatChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone, cron, spring, autumn string
		inSpring                   []string
		inAutumn                   [][]string // any one of these lists
	}{
		{
			"Europe/Berlin", "30 2 * * *", "2026-03-29", "2026-10-25", nil,
			[][]string{{"02:30:00+01:00"}, {"02:30:00+02:00"}, {"02:30:00+02:00", "02:30:00+01:00"}},
		},
		{"Europe/Berlin", "30 4 * * *", "2026-03-29", "2026-10-25", []string{"04:30:00+02:00"}, [][]string{{"04:30:00+01:00"}}},
		{
			"America/New_York", "30 2 * * *", "2026-03-08", "2026-11-01", nil, [][]string{{"02:30:00-05:00"}},
		},
		{
			"America/New_York", "30 1 * * *", "2026-03-08", "2026-11-01", []string{"01:30:00-05:00"},
			[][]string{{"01:30:00-04:00"}, {"01:30:00-05:00"}, {"01:30:00-04:00", "01:30:00-05:00"}},
		},
	} {
		location, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		on := map[string][]string{}
		id := "change-" + strings.NewReplacer("/", "-", " ", "-", "*", "x").Replace(c.zone+c.cron)
		for _, at := range timesOf(t, id, c.cron, c.zone, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 1000) {
			day, clock, _ := strings.Cut(at.In(location).Format(time.RFC3339), "T")
			on[day] = append(on[day], clock)
		}
		if !slices.Equal(on[c.spring], c.inSpring) {
			t.Errorf("%s in %s: in spring it comes at %q, want %q", c.cron, c.zone, on[c.spring], c.inSpring)
		}
		if !slices.ContainsFunc(c.inAutumn, func(want []string) bool { return slices.Equal(on[c.autumn], want) }) {
			t.Errorf("%s in %s: in autumn it comes at %q, want one of %q", c.cron, c.zone, on[c.autumn], c.inAutumn)
		}
	}
}
