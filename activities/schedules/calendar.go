package schedules

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	schedulepb "go.temporal.io/api/schedule/v1"

	"switchyard/workflows/cron"
)

// calendarText returns a calendar as a cron expression: with 5 fields if they suffice, else with 7.
func calendarText(c *schedulepb.StructuredCalendarSpec) string {
	parts := []string{
		rangesText(c.GetMinute(), 0, 59), rangesText(c.GetHour(), 0, 23), rangesText(c.GetDayOfMonth(), 1, 31),
		rangesText(c.GetMonth(), 1, 12), rangesText(c.GetDayOfWeek(), 0, 6),
	}
	second, year := rangesText(c.GetSecond(), 0, 59), "*"
	if len(c.GetYear()) > 0 {
		year = rangesText(c.GetYear(), 0, 0)
	}
	if second != "0" || year != "*" {
		parts = append(append([]string{second}, parts...), year)
	}
	return strings.Join(parts, " ")
}

// rangesText returns the ranges of a field as cron text. Without ranges it returns "0", which is
// Temporal's default.
func rangesText(ranges []*schedulepb.Range, low, high int32) string {
	if len(ranges) == 0 {
		return "0"
	}
	var texts []string
	for _, r := range ranges {
		end, step := max(r.GetEnd(), r.GetStart()), max(r.GetStep(), 1)
		text := strconv.Itoa(int(r.GetStart()))
		switch {
		case r.GetStart() == low && end == high && high > 0:
			text = "*"
		case end > r.GetStart():
			text += "-" + strconv.Itoa(int(end))
		}
		if step > 1 && end > r.GetStart() {
			text += "/" + strconv.Itoa(int(step))
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ",")
}

// intervalText returns an interval as a cron expression, with its offset from 1970 if it has one.
func intervalText(i *schedulepb.IntervalSpec) string {
	text := "@every " + cron.Duration(i.GetInterval().AsDuration())
	if phase := i.GetPhase().AsDuration(); phase > 0 {
		text += "/" + cron.Duration(phase)
	}
	return text
}

// calendarOf returns a calendar as Temporal has it.
func calendarOf(c cron.Calendar) *schedulepb.StructuredCalendarSpec {
	var years []*schedulepb.Range
	for _, year := range c.Years {
		years = appendValue(years, int32(year))
	}
	return &schedulepb.StructuredCalendarSpec{
		Second: []*schedulepb.Range{{}}, Minute: rangesOf(c.Minutes), Hour: rangesOf(c.Hours), DayOfMonth: rangesOf(c.Days),
		Month: rangesOf(c.Months), DayOfWeek: rangesOf(c.Weekdays), Year: years,
	}
}

// rangesOf returns the members of a bit set.
func rangesOf(set uint64) (ranges []*schedulepb.Range) {
	for ; set != 0; set &= set - 1 {
		ranges = appendValue(ranges, int32(bits.TrailingZeros64(set)))
	}
	return ranges
}

// appendValue adds a value to ranges of lower ones.
func appendValue(ranges []*schedulepb.Range, value int32) []*schedulepb.Range {
	if n := len(ranges); n > 0 && max(ranges[n-1].GetStart(), ranges[n-1].GetEnd()) == value-1 {
		ranges[n-1].End = value
		return ranges
	}
	return append(ranges, &schedulepb.Range{Start: value})
}

const (
	// maxComment is the maximum length of the comment of a calendar, in bytes.
	maxComment = 200
	// zoneMark separates the expression of a comment from its time zone.
	zoneMark = " in "
	// cutMark ends an expression that is too long for a comment.
	cutMark = "..."
)

// commentOf returns the comment that names an expression and its time zone. parseComment is the inverse.
func commentOf(expression, zone string) string {
	if zone != "" {
		zone = zoneMark + zone
	}
	if room := maxComment - len(zone); len(expression) > room {
		expression = expression[:room-len(cutMark)] + cutMark
	}
	return expression + zone
}

// parseComment returns the expression and the time zone of a comment. It returns false for any other comment.
func parseComment(text string) (expression, zone string, ok bool) {
	expression, zone, _ = strings.Cut(text, zoneMark)
	if _, err := cron.Parse(expression); err != nil && !strings.HasSuffix(expression, cutMark) {
		return "", "", false
	}
	_, err := cron.Zone(zone)
	return expression, zone, err == nil
}

// timesText returns all times of a schedule, and its excluded times, as cron expressions, and the time zone.
func timesText(spec *schedulepb.ScheduleSpec) (times, except []string, zone string) {
	times, zone = slices.Clone(spec.GetCronString()), spec.GetTimezoneName()
	compiled := false
	for _, c := range spec.GetStructuredCalendar() {
		expression, zoneOf, ok := parseComment(c.GetComment())
		switch {
		case ok:
			times, zone, compiled = append(times, expression), zoneOf, true
		case !compiled:
			times = append(times, calendarText(c))
		}
	}
	for _, i := range spec.GetInterval() {
		times = append(times, intervalText(i))
	}
	for _, c := range spec.GetExcludeStructuredCalendar() {
		except = append(except, calendarText(c))
	}
	return times, except, zone
}
