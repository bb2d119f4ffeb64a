package cron

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func mustParse(t *testing.T, text string) Expression {
	t.Helper()
	e, err := Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return e
}

func mustZone(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func TestNext(t *testing.T) {
	for _, c := range []struct {
		text, zone, after string
		want              []string
	}{
		{"0 2 * * *", "", "2026-01-31T02:00:00Z", []string{"2026-02-01T02:00:00Z", "2026-02-02T02:00:00Z"}},
		{"0 0 29 2 *", "", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"0 0 31 * *", "", "2026-01-31T00:00:00Z", []string{"2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"}},
		{"0 9 8-14 * mon", "", "2026-03-01T00:00:00Z", []string{"2026-03-09T09:00:00Z", "2026-04-13T09:00:00Z"}},
		{"30 9 * JAN,jul Friday", "", "2026-01-30T10:00:00Z", []string{"2026-07-03T09:30:00Z"}},
		{"0 0 * * 7", "", "2026-11-25T00:00:00Z", []string{"2026-11-29T00:00:00Z"}},
		{"0 0 * * 5-7", "", "2026-11-25T00:00:00Z", []string{"2026-11-27T00:00:00Z", "2026-11-28T00:00:00Z", "2026-11-29T00:00:00Z", "2026-12-04T00:00:00Z"}},
		{"50/4 23 * * *", "", "2026-12-31T23:54:00Z", []string{"2026-12-31T23:58:00Z", "2027-01-01T23:50:00Z"}},
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00+01:00", []string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00+02:00", []string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
		{"0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00+02:00", []string{"2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"}}, // no midnight on the 24th
		{"@every 90m", "", "1970-01-01T00:00:00Z", []string{"1970-01-01T01:30:00Z", "1970-01-01T03:00:00Z"}},
		{"@weekly", "", "2026-11-25T00:00:00Z", []string{"2026-11-29T00:00:00Z"}},
	} {
		e, zone := mustParse(t, c.text), mustZone(t, c.zone)
		at, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range c.want {
			at = e.Next(at, zone)
			got = append(got, at.Format(time.RFC3339))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s in %q after %s: %q, want %q", c.text, c.zone, c.after, got, c.want)
		}
	}
}

func TestExpressionsThatNeverCome(t *testing.T) {
	for _, text := range []string{"0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 2-2 MON"} {
		if e := mustParse(t, text); e.HasTimes() || !e.Next(epoch, time.UTC).IsZero() {
			t.Errorf("%s has the time %v", text, e.Next(epoch, time.UTC))
		}
	}
	for _, text := range []string{"0 0 29 2 *", "0 0 29 2 SUN", "@every 9000h"} {
		if !mustParse(t, text).HasTimes() {
			t.Errorf("%s has no times", text)
		}
	}
}

func TestShortestGap(t *testing.T) {
	for want, texts := range map[time.Duration][]string{
		24 * time.Hour:   {"0 2 * * *"},
		15 * time.Minute: {"0 2 * * *", "45 1 * * MON"},
		time.Minute:      {"* * * * *", "0 0 1 1 *"},
		time.Hour:        {"@every 1h", "@every 3h"},
	} {
		var all []Expression
		for _, text := range texts {
			all = append(all, mustParse(t, text))
		}
		if got := ShortestGap(all, time.UTC); got != want {
			t.Errorf("%q: %s, want %s", texts, got, want)
		}
	}
}

// TestWeekdaysAreWrittenAsTemporalReadsThem checks the form in which Temporal gets an expression: Temporal reads 1-7 without
// Sunday.
func TestWeekdaysAreWrittenAsTemporalReadsThem(t *testing.T) {
	for text, want := range map[string]string{
		"0 2 * * 1-7": "0 2 * * *", "0 2 * * 7": "0 2 * * 0", "0 2 * * FRI-SUN": "0 2 * * 0,5-6", "0 2 * * SAT-MON": "", "0 2 * * 0-0": "0 2 * * 0", "0 2 * * 5-7": "0 2 * * 0,5-6", "0  2 * *  */2": "0 2 * * 0,2,4,6", "@daily": "0 0 * * *",
	} {
		e, err := Parse(text)
		if want == "" {
			if err == nil {
				t.Errorf("%s is %s", text, e)
			}
			continue
		}
		if err != nil || e.String() != want {
			t.Errorf("%s is %s, %v, want %s", text, e, err, want)
		}
	}
}

func TestZones(t *testing.T) {
	for name, hint := range map[string]string{
		"Europe/Berln": "Europe/Berlin", "berlin": "Europe/Berlin", "new york": "America/New_York", "CEST": "Europe/Berlin", "Local": "Europe/Berlin", "PST": "America/Los_Angeles",
		"../../etc/passwd": "IANA", "Middle/Earth": "IANA", "america/new_yrok": "America/New_York", strings.Repeat("x", 1000): "IANA",
	} {
		_, err := Zone(name)
		bad, ok := errors.AsType[*Error](err)
		if !ok || !strings.Contains(bad.Hint, hint) {
			t.Errorf("%.30s: %v", name, err)
		}
	}
	for _, name := range zones() {
		mustZone(t, name)
	}
}

// FuzzParse checks that an accepted expression formats to a form that is accepted again and means the same, and that it has
// times or a reason for having none.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"0 2 * * MON-FRI", "*/15 8-18 1,15 JAN-JUN 0,7", "@daily", "@every 90m", "0 0 30 2 *", "CRON_TZ=UTC 0 2 * * *", "5/7 ? L # 1-7/3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := Parse(e.String())
		if err != nil || again != e {
			t.Fatalf("%q is written as %q and read as %v, %v", text, e, again, err)
		}
		if at := e.Next(epoch, time.UTC); at.IsZero() != !e.HasTimes() || !at.IsZero() && !at.After(epoch) {
			t.Fatalf("%q comes at %s", text, at)
		}
	})
}
