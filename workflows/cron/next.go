package cron

import (
	"math/bits"
	"slices"
	"time"
)

// lastYear is the last year in which Temporal looks for a time.
const lastYear = 2100

// Next returns the first time of the expression after another time, on the clocks of a time zone, or the zero time if there is
// none until the end of 2100.
func (e Expression) Next(after time.Time, zone *time.Location) time.Time {
	if every := int64(e.Every / time.Second); every > 0 {
		return time.Unix((after.Unix()/every+1)*every, 0).In(zone)
	}
	y, month, d := after.In(zone).Date()
	for day := date(y, month, d); day.Year() <= lastYear; {
		y, month, d = day.Date()
		if e.month&(1<<int(month)) == 0 {
			day = date(y, month+1, 1)
			continue
		}
		if e.dayOfMonth&(1<<d) != 0 && e.dayOfWeek&(1<<int(day.Weekday())) != 0 {
			if found := e.nextOn(day, after, zone); !found.IsZero() {
				return found
			}
		}
		day = date(y, month, d+1)
	}
	return time.Time{}
}

// date returns the midnight of a calendar day in UTC.
func date(y int, month time.Month, d int) time.Time {
	return time.Date(y, month, d, 0, 0, 0, 0, time.UTC)
}

// nextOn returns the first time on a day that is after another time, or the zero time if there is none.
func (e Expression) nextOn(day, after time.Time, zone *time.Location) time.Time {
	y, month, d := day.Date()
	// The loop visits each minute that the clocks show: none that they skip, and both occurrences of one that they show twice,
	// which may include the midnight at either end of the day.
	end := time.Date(y, month, d+1, 1, 0, 0, 0, zone)
	t := time.Date(y, month, d, 0, 0, 0, 0, zone).Add(-time.Hour)
	if t.Before(after) {
		t = after.In(zone).Truncate(time.Minute).Add(time.Minute)
	}
	for ; t.Before(end); t = t.Add(time.Minute) {
		if t.Day() == d && e.hour&(1<<t.Hour()) != 0 && e.minute&(1<<t.Minute()) != 0 {
			return t
		}
	}
	return time.Time{}
}

// epoch is the fixed start of searches for times, so that their results never change.
var epoch = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// HasTimes reports whether the expression has any time.
func (e Expression) HasTimes(zone *time.Location) bool { return !e.Next(epoch, zone).IsZero() }

// maxGaps is the most times that ShortestGap examines.
const maxGaps = 200

// ShortestGap returns the shortest interval between two of the first times of expressions from 2024 on, or 0 if there are fewer
// than two times.
func ShortestGap(all []Expression, zone *time.Location) time.Duration {
	var shortest time.Duration
	next := make([]time.Time, len(all))
	for i, e := range all {
		next[i] = e.Next(epoch, zone)
	}
	var before time.Time
	for range maxGaps {
		first := -1
		for i, t := range next {
			if !t.IsZero() && (first < 0 || t.Before(next[first])) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		at := next[first]
		for i, t := range next {
			if t.Equal(at) {
				next[i] = all[i].Next(at, zone)
			}
		}
		if gap := at.Sub(before); !before.IsZero() && (shortest == 0 || gap < shortest) {
			shortest = gap
		}
		before = at
	}
	return shortest
}

// daysOfMonths holds the number of days of each month in a leap year.
var daysOfMonths = []int{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// WhyNever returns why an expression has no times.
func (e Expression) WhyNever() string {
	first := bits.TrailingZeros64(e.dayOfMonth)
	longest := 0
	for month, days := range daysOfMonths {
		if e.month&(1<<month) != 0 {
			longest = max(longest, days)
		}
	}
	if first > longest {
		return "none of its months has that day"
	}
	return "the clocks of its time zone skip that time"
}

// sameTimes reports whether two expressions have the same times.
func (e Expression) sameTimes(other Expression) bool {
	e.text, other.text = "", ""
	return e == other
}

// Repeated returns index pairs: each expression with the same times as an earlier one, and that earlier one.
func Repeated(all []Expression) (pairs [][2]int) {
	for i := range all {
		if first := slices.IndexFunc(all, all[i].sameTimes); first < i {
			pairs = append(pairs, [2]int{i, first})
		}
	}
	return pairs
}
