package policy

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"switchyard/workflows/cron"
)

// hourRange is a time of day on some days of the week, such as "Mon-Fri 19:00-07:00 Europe/Berlin".
type hourRange struct {
	days     [7]bool // by weekday, on which the range begins
	from, to int     // in minutes after midnight; to is after from, and may be on the next day
	zone     *time.Location
}

const minutesPerDay = 24 * 60

// hourText matches a range: days, beginning, end and time zone.
var hourText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:([A-Za-z]+)(?:-([A-Za-z]+))? +)?(\d{1,2}):(\d\d)-(\d{1,2}):(\d\d)(?: +(\S+))?$`)
})

// parseHours reads a range.
func parseHours(text string) (hourRange, error) {
	parts := hourText().FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return hourRange{}, errors.New("write days, times and a time zone, such as Mon-Fri 19:00-07:00 Europe/Berlin")
	}
	r := hourRange{zone: time.Local}
	first, last := 0, 6
	var err error
	if parts[1] != "" {
		if first, err = weekday(parts[1]); err != nil {
			return r, err
		}
		last = first
	}
	if parts[2] != "" {
		if last, err = weekday(parts[2]); err != nil {
			return r, err
		}
	}
	for day := first; ; day = (day + 1) % 7 {
		r.days[day] = true
		if day == last {
			break
		}
	}
	clock := func(hour, minute string) int {
		h, _ := strconv.Atoi(hour) // the pattern allows only digits
		m, _ := strconv.Atoi(minute)
		if m > 59 {
			return -1
		}
		return h*60 + m
	}
	r.from, r.to = clock(parts[3], parts[4]), clock(parts[5], parts[6])
	switch {
	case r.from < 0 || r.from >= minutesPerDay || r.to < 0 || r.to > minutesPerDay:
		return r, errors.New("times are 00:00 to 24:00")
	case r.from == r.to:
		return r, errors.New("it begins when it ends; for whole days write 00:00-24:00")
	case r.to < r.from:
		r.to += minutesPerDay
	}
	if parts[7] != "" {
		if r.zone, err = cron.Zone(parts[7]); err != nil {
			if unknown, ok := errors.AsType[*cron.Error](err); ok {
				return r, fmt.Errorf("%s is not a time zone: %s", parts[7], unknown.Hint)
			}
			return r, err
		}
	}
	return r, nil
}

// weekday returns the number of a day, as time.Weekday counts, by its name or the first three letters of it.
func weekday(name string) (int, error) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if full := day.String(); strings.EqualFold(name, full) || strings.EqualFold(name, full[:3]) {
			return int(day), nil
		}
	}
	return 0, fmt.Errorf("%s is not a day; write Mon, Tue, Wed, Thu, Fri, Sat or Sun", name)
}

// on returns when the range begins and ends that belongs to the date of a time plus some days. It is empty if the range does not begin
// on that day, or if daylight saving time skips it.
func (r hourRange) on(now time.Time, days int) (from, to time.Time) {
	year, month, day := now.In(r.zone).Date()
	from = time.Date(year, month, day+days, 0, r.from, 0, 0, r.zone)
	to = time.Date(year, month, day+days, 0, r.to, 0, 0, r.zone)
	if !r.days[time.Date(year, month, day+days, 12, 0, 0, 0, r.zone).Weekday()] {
		return to, to
	}
	return from, to
}

// opensAt reports whether none of the ranges contains a time, and returns when the next one begins.
func opensAt(ranges []hourRange, now time.Time) (next time.Time, isClosed bool) {
	const week = 8 // days, because the range of the same day of the next week may be the next one
	for _, r := range ranges {
		for days := -1; days <= week; days++ {
			from, to := r.on(now, days)
			switch {
			case !from.Before(to) || !now.Before(to):
			case !now.Before(from):
				return time.Time{}, false
			case next.IsZero() || from.Before(next):
				next = from
			}
		}
	}
	return next, len(ranges) > 0
}

// openingText returns when a range begins, for people who read it at a certain time.
func openingText(next, now time.Time) string {
	if next.Sub(now) < 24*time.Hour {
		return next.Format("15:04 MST")
	}
	return next.Format("Mon 15:04 MST")
}
