package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// maxTimesOfDay is the most times of a day that are listed in words.
const maxTimesOfDay = 6

// Words describes an expression in English, such as "at 02:00 on Monday to Friday". A text that is not an expression, such as a
// Temporal calendar with seconds, is returned unchanged.
func Words(text string) string {
	e, err := Parse(text)
	if err != nil {
		return text
	}
	if e.Every > 0 {
		return "every " + Duration(e.Every)
	}
	times, daily := e.timesInWords()
	days := e.daysInWords()
	if daily && days == "" {
		return "every day " + times
	}
	return times + days
}

// timesInWords describes the minutes and hours. daily is set if the result is a list of times of the day.
func (e Expression) timesInWords() (words string, daily bool) {
	minutes, hours := valuesOf(e.minute), valuesOf(e.hour)
	allHours := len(hours) == 24
	minuteStep, hourStep := stepOf(minutes, 60), stepOf(hours, 24)
	switch {
	case len(minutes)*len(hours) <= maxTimesOfDay:
		var list []string
		for _, h := range hours {
			for _, m := range minutes {
				list = append(list, fmt.Sprintf("%02d:%02d", h, m))
			}
		}
		return "at " + joined(list), true
	case len(minutes) == 1 && (allHours || hourStep > 1):
		words = "every hour"
		if !allHours {
			words = fmt.Sprintf("every %d hours", hourStep)
		}
		if minutes[0] > 0 {
			words += fmt.Sprintf(" at minute %d", minutes[0])
		}
		return words, false
	case len(minutes) == 60:
		words = "every minute"
	case minuteStep > 1:
		words = fmt.Sprintf("every %d minutes", minuteStep)
	case len(minutes) == 1:
		words = fmt.Sprintf("at minute %d", minutes[0])
	default:
		words = "at minutes " + joinedNumbers(minutes)
	}
	switch first, last := hours[0], hours[len(hours)-1]; {
	case allHours && strings.HasPrefix(words, "at"):
		words += " of each hour"
	case allHours:
	case last-first == len(hours)-1:
		words += fmt.Sprintf(" from %02d:00 to %02d:59", first, last)
	default:
		words += " in the hours " + joinedNumbers(hours)
	}
	return words, false
}

// daysInWords describes the days, with a leading space, or returns "" for every day.
func (e Expression) daysInWords() string {
	var words string
	if weekdays := valuesOf(e.dayOfWeek & (1<<7 - 1)); len(weekdays) < 7 {
		words = " on " + namedSpan(weekdays, func(day int) string { return time.Weekday(day).String() })
	}
	if days := valuesOf(e.dayOfMonth); len(days) < 31 {
		word := " on day "
		if words != "" {
			word = " that is day "
		}
		words += word + namedSpan(days, strconv.Itoa) + " of the month"
	}
	if months := valuesOf(e.month); len(months) < 12 {
		words += " in " + namedSpan(months, func(month int) string { return time.Month(month).String() })
	}
	return words
}

// valuesOf returns the members of a bit set in ascending order.
func valuesOf(set uint64) []int {
	values := make([]int, 0, bits.OnesCount64(set))
	for ; set != 0; set &= set - 1 {
		values = append(values, bits.TrailingZeros64(set))
	}
	return values
}

// stepOf returns the distance between values that begin at 0 and divide a circle evenly, or 0 if they do not.
func stepOf(values []int, circle int) int {
	if len(values) < 2 || circle%len(values) != 0 {
		return 0
	}
	step := circle / len(values)
	for i, v := range values {
		if v != i*step {
			return 0
		}
	}
	return step
}

// namedSpan formats values by name, with three or more consecutive ones as a span.
func namedSpan(values []int, name func(int) string) string {
	var list []string
	for i := 0; i < len(values); i++ {
		first := i
		for i+1 < len(values) && values[i+1] == values[i]+1 {
			i++
		}
		switch {
		case i-first > 1:
			list = append(list, name(values[first])+" to "+name(values[i]))
		default:
			for _, v := range values[first : i+1] {
				list = append(list, name(v))
			}
		}
	}
	return joined(list)
}

func joinedNumbers(values []int) string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = strconv.Itoa(v)
	}
	return joined(list)
}

// joined formats a list in words: "a, b and c".
func joined(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}
