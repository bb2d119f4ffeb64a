package schedules

import (
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

// timesText returns all times of a schedule, and its excluded times, as cron expressions.
func timesText(spec *schedulepb.ScheduleSpec) (times, except []string) {
	times = slices.Clone(spec.GetCronString())
	for _, c := range spec.GetStructuredCalendar() {
		times = append(times, calendarText(c))
	}
	for _, i := range spec.GetInterval() {
		times = append(times, intervalText(i))
	}
	for _, c := range spec.GetExcludeStructuredCalendar() {
		except = append(except, calendarText(c))
	}
	return times, except
}
