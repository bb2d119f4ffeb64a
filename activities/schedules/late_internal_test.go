package schedules

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

// TestLastExpected checks by when a run of a schedule had to have completed, and for which of its times.
func TestLastExpected(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		if text == "" {
			return time.Time{}
		}
		when, err := time.Parse("2006-01-02 15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	// 1 June 2026 is a Monday.
	for name, test := range map[string]struct {
		cron, zone, by string
		stored, now    string
		first, due     string
	}{
		"after the time of the day":  {"0 2 * * *", "", "06:00", "2026-01-01 00:00", "2026-06-03 06:00", "2026-06-03 02:00", "2026-06-03 06:00"},
		"before it":                  {"0 2 * * *", "", "06:00", "2026-01-01 00:00", "2026-06-03 05:59", "2026-06-02 02:00", "2026-06-02 06:00"},
		"start at that time":         {"0 6 * * *", "", "06:00", "2026-01-01 00:00", "2026-06-03 07:00", "2026-06-02 06:00", "2026-06-03 06:00"},
		"over midnight":              {"0 22 * * *", "", "06:00", "2026-01-01 00:00", "2026-06-03 07:00", "2026-06-02 22:00", "2026-06-03 06:00"},
		"the weekend is free":        {"0 2 * * MON-FRI", "", "06:00", "2026-01-01 00:00", "2026-06-07 12:00", "2026-06-05 02:00", "2026-06-05 06:00"},
		"once a week":                {"0 2 * * MON", "", "06:00", "2026-01-01 00:00", "2026-06-07 12:00", "2026-06-01 02:00", "2026-06-01 06:00"},
		"once a month":               {"0 2 1 * *", "", "06:00", "2026-01-01 00:00", "2026-06-28 12:00", "2026-06-01 02:00", "2026-06-01 06:00"},
		"any of many":                {"0 * * * *", "", "06:00", "2026-01-01 00:00", "2026-06-03 06:30", "2026-06-02 06:00", "2026-06-03 06:00"},
		"every 90 minutes":           {"@every 90m", "", "06:00", "2026-01-01 00:00", "2026-06-03 06:30", "2026-06-02 06:00", "2026-06-03 06:00"},
		"summer":                     {"0 2 * * *", "Europe/Berlin", "06:00", "2026-01-01 00:00", "2026-06-03 04:00", "2026-06-03 00:00", "2026-06-03 04:00"},
		"winter":                     {"0 2 * * *", "Europe/Berlin", "06:00", "2026-01-01 00:00", "2026-12-03 04:59", "2026-12-02 01:00", "2026-12-02 05:00"},
		"a time that clocks skip":    {"30 2 * * *", "Europe/Berlin", "02:30", "2026-01-01 00:00", "2026-03-29 01:00", "2026-03-28 01:30", "2026-03-29 01:00"},
		"stored after its start":     {"0 2 * * *", "", "06:00", "2026-06-03 03:00", "2026-06-03 07:00", "", ""},
		"stored since, next day":     {"0 2 * * *", "", "06:00", "2026-06-03 03:00", "2026-06-04 06:00", "2026-06-04 02:00", "2026-06-04 06:00"},
		"not expected by any time":   {"0 2 * * *", "", "", "2026-01-01 00:00", "2026-06-03 07:00", "", ""},
		"its last time is long past": {"0 2 1 1 *", "", "06:00", "2025-01-01 00:00", "2026-06-03 07:00", "", ""},
	} {
		s := &v1.Schedule{Cron: []string{test.cron}, Timezone: test.zone, ExpectedBy: test.by, StoredAt: timestamppb.New(at(test.stored))}
		first, due := lastExpected(s, at(test.now))
		if !first.Equal(at(test.first)) || !due.Equal(at(test.due)) {
			t.Errorf("%s: a run since %v by %v, want %s by %s", name, first.UTC(), due.UTC(), test.first, test.due)
		}
	}
}
