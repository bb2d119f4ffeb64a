package cron

import (
	"math/bits"
	"slices"
	"time"
)

// The first and the last year in which Temporal looks for a time.
const firstYear, lastYear = 2000, 2100

// label is a time on the clock of a zone, written as if it were UTC.
type label = time.Time

const (
	everyHour = 1<<24 - 1
)

// period is a span of time with one offset from UTC, between two changes of the clocks.
type period struct {
	start, end time.Time // zero if unbounded
	offset     time.Duration
	// first is the label at which an expression begins to match in the period.
	first label
	// skipped is the label before which the clocks stood at the start of the period if the expression makes up for the labels
	// from there to first, which the clocks skip.
	skipped label
}

// periodOf returns the period of a time. In its first moments the clocks may skip labels, or show labels again. An expression
// with certain hours makes up for the former at the start of the period, and ignores the latter.
func (e Expression) periodOf(t time.Time, zone *time.Location) period {
	start, _ := t.In(zone).ZoneBounds()
	p := period{start: start, end: periodEnd(t, zone), offset: offsetOf(t, zone)}
	if start.IsZero() {
		return p
	}
	p.first = start.UTC().Add(p.offset)
	if before := start.UTC().Add(offsetOf(start.Add(-time.Second), zone)); e.hour != everyHour {
		if before.After(p.first) {
			p.first = before
		} else {
			p.skipped = before
		}
	}
	return p
}

// periodEnd returns the end of the period of a time. ZoneBounds also ends at changes that leave the offset as it is, such as the
// end of a year, or a day before the end of a leap year.
func periodEnd(t time.Time, zone *time.Location) time.Time {
	end := t.In(zone)
	for end.Year() <= lastYear+1 {
		_, bound := end.ZoneBounds()
		if bound.IsZero() {
			return bound
		}
		if !bound.After(end) {
			bound = end.Add(day)
		}
		if end = bound; offsetOf(end, zone) != offsetOf(t, zone) {
			return end
		}
	}
	return time.Time{}
}

// makesUp reports whether the expression starts at the start of the period because the clocks skipped one of its labels.
func (e Expression) makesUp(p period) bool {
	if p.skipped.IsZero() {
		return false
	}
	skipped := e.nextLabel(p.skipped)
	return !skipped.IsZero() && skipped.Before(p.first)
}

func offsetOf(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// Next returns the first time of the expression after another time, on the clocks of a time zone, or the zero time if there is
// none until the end of 2100.
//
// A minute that the clocks show twice counts once, the first time, unless the expression has every hour. One that they skip
// counts right after the gap, unless the expression has every hour.
func (e Expression) Next(after time.Time, zone *time.Location) time.Time {
	if every := int64(e.Every / time.Second); every > 0 {
		return time.Unix((after.Unix()/every+1)*every, 0).In(zone)
	}
	from := after.UTC().Truncate(time.Minute).Add(time.Minute)
	for {
		p := e.periodOf(from, zone)
		if from.Equal(p.start) && e.makesUp(p) {
			return p.start
		}
		at := from.Add(p.offset)
		if at.Before(p.first) {
			at = p.first
		}
		if at = e.nextLabel(at); at.IsZero() {
			return time.Time{}
		}
		if at = at.Add(-p.offset); p.end.IsZero() || at.Before(p.end) {
			return at.In(zone)
		}
		from = p.end.UTC()
	}
}

// nextLabel returns the first label that the expression matches, at or after another one, or the zero time if there is none
// until the end of 2100.
func (e Expression) nextLabel(from label) label {
	y, month, d := from.Date()
	for day := date(y, month, d); day.Year() <= lastYear; {
		y, month, d = day.Date()
		if e.month&(1<<int(month)) == 0 {
			day = date(y, month+1, 1)
			continue
		}
		if e.hasDay(day) {
			for h := max(0, int(from.Sub(day)/time.Hour)); h < 24; h++ {
				minutes := e.minute
				if since := int((from.Sub(day) - time.Duration(h)*time.Hour) / time.Minute); since > 0 {
					minutes = minutes >> since << since
				}
				if e.hour&(1<<h) != 0 && minutes != 0 {
					return day.Add(time.Duration(h)*time.Hour + time.Duration(bits.TrailingZeros64(minutes))*time.Minute)
				}
			}
		}
		day = date(y, month, d+1)
	}
	return time.Time{}
}

// hasDay reports whether the expression matches a day.
func (e Expression) hasDay(day label) bool {
	_, month, d := day.Date()
	return e.month&(1<<int(month)) != 0 && e.dayOfMonth&(1<<d) != 0 && e.dayOfWeek&(1<<int(day.Weekday())) != 0
}

// date returns the midnight of a calendar day in UTC.
func date(y int, month time.Month, d int) time.Time {
	return time.Date(y, month, d, 0, 0, 0, 0, time.UTC)
}

// epoch is the fixed start of searches for times, so that their results never change.
var epoch = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// HasTimes reports whether the expression has any time, which it lacks if none of its months has its days.
func (e Expression) HasTimes() bool { return e.Every > 0 || !e.nextLabel(epoch).IsZero() }

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
