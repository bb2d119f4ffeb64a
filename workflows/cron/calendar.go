package cron

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"time"
)

// Calendar is a set of minutes in UTC: those that each of its fields contains.
type Calendar struct {
	Pattern
	// Months is the bit set of the months.
	Months uint64
	// Years are the years in ascending order, or nil for every year.
	Years []int
}

// Pattern is the part of a calendar that does not depend on months and years, as bit sets.
type Pattern struct{ Minutes, Hours, Days, Weekdays uint64 }

// everyDay, everyMonth and everyWeekday are the bit sets of all values of a field.
const (
	everyDay     = 1<<32 - 2
	everyMonth   = 1<<13 - 2
	everyWeekday = 1<<7 - 1
)

// Calendars returns the times of a cron expression on the clocks of a time zone, from 2000 to the end of 2100, as calendars in
// UTC, where no clock changes. The most general calendars come first. An interval has none.
func (e Expression) Calendars(zone *time.Location) []Calendar {
	if e.Every > 0 {
		return nil
	}
	first, end := date(firstYear, time.January, 1).AddDate(0, 0, -2), date(lastYear+1, time.January, 3)
	c := compilation{e, map[Pattern]map[int]uint64{}}
	for from := first; !from.IsZero() && from.Before(end); {
		p := e.periodOf(from, zone)
		for e.isSameEachHour() && !p.end.IsZero() && p.end.Before(end) && (offsetOf(p.end, zone)-p.offset)%time.Hour == 0 {
			p.end = periodEnd(p.end, zone)
		}
		c.addPeriod(p, from, end)
		from = p.end.UTC()
	}
	return c.calendars()
}

// isSameEachHour reports whether each hour of each day has the same times, so that changes of the clocks by whole hours do not
// matter.
func (e Expression) isSameEachHour() bool {
	return e.hour == everyHour && e.dayOfMonth == everyDay && e.month == everyMonth && e.dayOfWeek == everyWeekday
}

// compilation collects the calendars of an expression.
type compilation struct {
	Expression
	months map[Pattern]map[int]uint64 // by pattern and year
}

func (c compilation) add(p Pattern, year int, month time.Month) {
	if year < firstYear || year > lastYear {
		return
	}
	if c.months[p] == nil {
		c.months[p] = map[int]uint64{}
	}
	c.months[p][year] |= 1 << int(month)
}

// addPeriod adds the times of the part of a period that begins at from and ends before end.
func (c compilation) addPeriod(p period, from, end time.Time) {
	if p.end.IsZero() || p.end.After(end) {
		p.end = end
	}
	first, last := from.Add(p.offset), p.end.UTC().Add(p.offset)
	if first.Before(p.first) {
		first = p.first
	}
	// The first and the last day may be incomplete.
	firstDay, lastDay := first.Truncate(day), last.Truncate(day)
	if first.After(firstDay) {
		firstDay = firstDay.Add(day)
	}
	var single []time.Time
	if c.makesUp(p) {
		single = append(single, p.start.UTC())
	}
	addLabels := func(from, to label) {
		for at := c.nextLabel(from); !at.IsZero() && at.Before(to); at = c.nextLabel(at.Add(time.Minute)) {
			single = append(single, at.Add(-p.offset))
		}
	}
	if firstDay.After(lastDay) {
		addLabels(first, last)
	} else {
		addLabels(first, firstDay)
		addLabels(lastDay, last)
		c.addDays(firstDay, lastDay, p.offset)
	}
	c.addTimes(single)
}

const day = 24 * time.Hour

// addDays adds the times of whole days of the clock, from first to the day before last.
func (c compilation) addDays(first, last label, offset time.Duration) {
	// UTC times of a day of the clock, by hour, from the midnight of UTC before that day.
	var minutes [3 * 24]uint64
	for _, h := range valuesOf(c.hour) {
		for _, m := range valuesOf(c.minute) {
			at := 24*60 + h*60 + m - int(offset/time.Minute)
			minutes[at/60] |= 1 << (at % 60)
		}
	}
	for i := range 3 {
		shift := i - 1
		times := patternsOf(minutes[24*i : 24*i+24])
		if len(times) == 0 {
			continue
		}
		days := map[time.Time]uint64{} // by the first day of the month
		for local := first; local.Before(last); local = local.Add(day) {
			if c.month&(1<<int(local.Month())) != 0 && c.dayOfMonth&(1<<local.Day()) != 0 {
				y, month, d := local.AddDate(0, 0, shift).Date()
				days[date(y, month, 1)] |= 1 << d
			}
		}
		for month, set := range days {
			// Bits beyond the end of the month are free: they are set as in other months.
			beyond := uint64(everyDay) &^ (1<<(month.AddDate(0, 1, -1).Day()+1) - 1)
			switch {
			case set|beyond == everyDay:
				set = everyDay
			case shift < 0:
				set |= c.dayOfMonth >> 1 & beyond
			default:
				set |= c.dayOfMonth << shift & beyond
			}
			for _, p := range times {
				p.Days, p.Weekdays = set, rotated(c.dayOfWeek, shift)
				c.add(p, month.Year(), month.Month())
			}
		}
	}
}

// addTimes adds single times in UTC.
func (c compilation) addTimes(times []time.Time) {
	days := map[time.Time][]uint64{}
	for _, at := range times {
		midnight := at.Truncate(day)
		if days[midnight] == nil {
			days[midnight] = make([]uint64, 24)
		}
		days[midnight][at.Hour()] |= 1 << at.Minute()
	}
	for at, minutes := range days {
		for _, p := range patternsOf(minutes) {
			p.Days, p.Weekdays = 1<<at.Day(), everyWeekday
			c.add(p, at.Year(), at.Month())
		}
	}
}

// patternsOf returns the times of a day whose minutes are given by hour. Hours with the same minutes form one pattern.
func patternsOf(minutes []uint64) (all []Pattern) {
	for h, set := range minutes {
		if set == 0 {
			continue
		}
		i := slices.IndexFunc(all, func(p Pattern) bool { return p.Minutes == set })
		if i < 0 {
			i, all = len(all), append(all, Pattern{Minutes: set})
		}
		all[i].Hours |= 1 << h
	}
	return all
}

// rotated moves a set of weekdays by shift, which is -1, 0 or 1.
func rotated(weekdays uint64, shift int) uint64 {
	weekdays <<= (shift + 7) % 7
	return (weekdays | weekdays>>7) & everyWeekday
}

// calendars returns the collected calendars. Years with the same months of a pattern form one calendar.
func (c compilation) calendars() (all []Calendar) {
	for p, years := range c.months {
		byMonths := map[uint64][]int{}
		for _, year := range slices.Sorted(maps.Keys(years)) {
			byMonths[years[year]] = append(byMonths[years[year]], year)
		}
		for months, years := range byMonths {
			if len(years) == lastYear-firstYear+1 {
				years = nil
			}
			all = append(all, Calendar{p, months, years})
		}
	}
	generality := func(c Calendar) int {
		years := len(c.Years)
		if c.Years == nil {
			years = lastYear - firstYear + 1
		}
		return years * bits.OnesCount64(c.Months) * bits.OnesCount64(c.Days)
	}
	slices.SortFunc(all, func(a, b Calendar) int {
		return cmp.Or(
			cmp.Compare(generality(b), generality(a)), slices.Compare(a.Years, b.Years), cmp.Compare(a.Months, b.Months),
			cmp.Compare(a.Days, b.Days), cmp.Compare(a.Hours, b.Hours), cmp.Compare(a.Minutes, b.Minutes), cmp.Compare(a.Weekdays, b.Weekdays),
		)
	})
	return all
}
