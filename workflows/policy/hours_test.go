package policy

import (
	"strings"
	"testing"
	"time"
)

// TestHours checks when a node opens, in the weeks in which Berlin changes its clocks, too: on 29 March 2026 at 02:00 to 03:00, and on
// 25 October 2026 at 03:00 to 02:00.
func TestHours(t *testing.T) {
	t.Parallel()
	night, weekend := "Mon-Fri 19:00-07:00 Europe/Berlin", "Sat-Sun 00:00-24:00 Europe/Berlin"
	for _, test := range []struct {
		ranges []string
		now    string // UTC
		want   string // "" if the node is open
	}{
		{[]string{night}, "2026-12-01T18:00:00Z", ""},          // Tue 19:00
		{[]string{night}, "2026-12-01T17:59:59Z", "19:00 CET"}, // Tue 18:59
		{[]string{night}, "2026-12-02T05:59:59Z", ""},          // Wed 06:59
		{[]string{night}, "2026-12-02T06:00:00Z", "19:00 CET"}, // Wed 07:00
		{[]string{night}, "2026-12-05T05:00:00Z", ""},          // Sat 06:00, of Friday
		{[]string{night}, "2026-12-05T06:00:00Z", "Mon 19:00 CET"},
		{[]string{night}, "2026-12-07T05:00:00Z", "19:00 CET"}, // Mon 06:00: no range begins on Sunday
		{[]string{night, weekend}, "2026-12-05T06:00:00Z", ""},
		{[]string{night, weekend}, "2026-12-06T22:59:00Z", ""},
		{[]string{night, weekend}, "2026-12-06T23:00:00Z", "19:00 CET"},
		{[]string{"Mon-Fri 19:00-07:00 Europe/Berlin"}, "2026-03-30T16:59:00Z", "19:00 CEST"}, // 18:59 CEST
		{[]string{"Mon-Fri 19:00-07:00 Europe/Berlin"}, "2026-03-30T17:00:00Z", ""},
		{[]string{"Sat 22:00-06:00 Europe/Berlin"}, "2026-03-29T03:59:00Z", ""}, // Sun 05:59 CEST, an hour less
		{[]string{"Sat 22:00-06:00 Europe/Berlin"}, "2026-03-29T04:00:00Z", "Sat 22:00 CEST"},
		{[]string{"Sat 22:00-06:00 Europe/Berlin"}, "2026-10-25T04:59:00Z", ""}, // Sun 05:59 CET, an hour more
		{[]string{"Sat 22:00-06:00 Europe/Berlin"}, "2026-10-25T05:00:00Z", "Sat 22:00 CET"},
		{[]string{"Sun 02:00-03:00 Europe/Berlin"}, "2026-03-29T01:00:00Z", "Sun 02:00 CEST"}, // there is no such hour
		{[]string{"23:00-01:00 UTC"}, "2026-12-01T00:30:00Z", ""},
		{[]string{"23:00-01:00 UTC"}, "2026-12-01T01:00:00Z", "23:00 UTC"},
		{[]string{"Fri-Mon 08:00-09:00 UTC"}, "2026-12-06T08:30:00Z", ""},                 // Sun
		{[]string{"fri-monday 08:00-09:00 UTC"}, "2026-12-08T08:30:00Z", "Fri 08:00 UTC"}, // Tue
		{[]string{"Tue 08:00-09:00 UTC"}, "2026-12-01T09:00:00Z", "Tue 08:00 UTC"},        // a week later
		{[]string{"9:00-17:00 America/New_York", "9:00-17:00 Asia/Tokyo"}, "2026-12-01T13:00:00Z", "09:00 EST"},
		{[]string{"9:00-17:00 America/New_York", "9:00-17:00 Asia/Tokyo"}, "2026-12-01T23:00:00Z", "09:00 JST"},
		{nil, "2026-12-01T23:00:00Z", ""},
	} {
		var ranges []hourRange
		for _, text := range test.ranges {
			r, err := parseHours(text)
			if err != nil {
				t.Fatal(err)
			}
			ranges = append(ranges, r)
		}
		now, err := time.Parse(time.RFC3339, test.now)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if next, isClosed := opensAt(ranges, now); isClosed {
			got = openingText(next, now)
		}
		if got != test.want {
			t.Errorf("%q at %s: opens at %q, want %q", test.ranges, test.now, got, test.want)
		}
	}
}

func TestHoursThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "such as Mon-Fri 19:00-07:00 Europe/Berlin",
		"nights":                        "such as Mon-Fri",
		"Mon-Fri":                       "such as Mon-Fri",
		"Mon,Tue 19:00-20:00":           "such as Mon-Fri",
		"19-7":                          "such as Mon-Fri",
		"Mo-Fri 19:00-07:00":            "Mo is not a day",
		"Mon-Frei 19:00-07:00":          "Frei is not a day",
		"19:00-25:00":                   "00:00 to 24:00",
		"24:00-07:00":                   "00:00 to 24:00",
		"19:60-20:00":                   "00:00 to 24:00",
		"19:00-19:00":                   "00:00-24:00",
		"19:00-07:00 Berlin":            "did you mean Europe/Berlin?",
		"19:00-07:00 Local":             "is not a time zone",
		"19:00-07:00 Europe/Berlin now": "such as Mon-Fri",
	} {
		if _, err := parseHours(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
