package cron

import (
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"time"

	"switchyard/workflows/nearest"
)

// Expression is a cron expression or an interval. The zero Expression has no times.
type Expression struct {
	// Every is the interval of "@every 90m", counted from 1970, or 0.
	Every time.Duration
	// text is the equivalent expression with 5 fields and with weekdays as numbers from 0 to 6.
	text                                       string
	minute, hour, dayOfMonth, month, dayOfWeek uint64
}

// Error is the reason why a text is not a valid expression or time zone.
type Error struct {
	// Message is a clause about the text, such as "which has 6 fields; it must have 5".
	Message string
	// Hint is the remedy, or "" if unknown.
	Hint string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// field describes the values that one field of an expression may hold.
type field struct {
	name      string
	low, high int
	words     []string // names of the values, starting at low
	shortest  int      // shortest accepted prefix of a word, in letters
}

var fields = []field{
	{name: "minute", high: 59},
	{name: "hour", high: 23},
	{name: "day", low: 1, high: 31},
	{name: "month", low: 1, high: 12, shortest: 3, words: []string{
		"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
	}},
	// 7 is Sunday, too.
	{name: "weekday", high: 7, shortest: 2, words: []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}},
}

// short maps named expressions to their long form.
var short = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// shortNames lists the names for messages.
var shortNames = []string{"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually", "@every"}

// maxLength is the maximum length of an expression, in bytes.
const maxLength = 500

const form = `write "MINUTE HOUR DAY MONTH WEEKDAY", such as "0 2 * * MON-FRI", or @daily, or "@every 90m"`

// Parse parses an expression. The error is an *Error.
func Parse(text string) (Expression, error) {
	trimmed := strings.TrimSpace(text)
	switch {
	case len(trimmed) > maxLength:
		return Expression{}, &Error{fmt.Sprintf("which has %d characters; it may have %d", len(trimmed), maxLength), ""}
	case trimmed == "":
		return Expression{}, &Error{"which is empty", form}
	case strings.HasPrefix(trimmed, "TZ="), strings.HasPrefix(trimmed, "CRON_TZ="):
		zone, rest, _ := strings.Cut(trimmed, " ")
		_, zone, _ = strings.Cut(zone, "=")
		return Expression{}, &Error{"which contains a time zone", fmt.Sprintf("write timezone: %s, and cron: %q", zone, strings.TrimSpace(rest))}
	case strings.HasPrefix(trimmed, "@"):
		return parseShort(trimmed)
	}
	parts := strings.Fields(trimmed)
	if len(parts) != len(fields) {
		hint := form
		switch len(parts) {
		case 6, 7:
			hint = "there is no field for seconds or years; " + form
		}
		return Expression{}, &Error{fmt.Sprintf("which has %d fields; it must have 5", len(parts)), hint}
	}
	var e Expression
	for i, to := range []*uint64{&e.minute, &e.hour, &e.dayOfMonth, &e.month, &e.dayOfWeek} {
		set, err := fields[i].parse(parts[i])
		if err != nil {
			return Expression{}, err
		}
		*to = set
	}
	if e.dayOfWeek&(1<<7) != 0 {
		e.dayOfWeek = e.dayOfWeek&^(1<<7) | 1
	}
	// Temporal reads 1-7 as 1-6.
	e.text = strings.Join(append(parts[:4:4], weekdays(e.dayOfWeek)), " ")
	return e, nil
}

// weekdays formats days of the week as a field.
func weekdays(set uint64) string {
	if set == 1<<7-1 {
		return "*"
	}
	var spans []string
	for day := 0; day < 7; day++ {
		if set&(1<<day) == 0 {
			continue
		}
		first := day
		for day < 6 && set&(1<<(day+1)) != 0 {
			day++
		}
		span := strconv.Itoa(first)
		if day > first {
			span += "-" + strconv.Itoa(day)
		}
		spans = append(spans, span)
	}
	return strings.Join(spans, ",")
}

// parseShort parses an expression that begins with @.
func parseShort(text string) (Expression, error) {
	name, rest, _ := strings.Cut(text, " ")
	if long, ok := short[name]; ok && rest == "" {
		return Parse(long)
	}
	if name != "@every" {
		hint := nearest.DidYouMean(name, shortNames)
		if hint == "" {
			hint = form
		}
		return Expression{}, &Error{"which is not a known name", hint}
	}
	every, err := time.ParseDuration(strings.TrimSpace(rest))
	switch {
	case err != nil:
		return Expression{}, &Error{"which has no duration after @every", `write one, such as "@every 90m"`}
	case every < time.Second || every%time.Second != 0:
		return Expression{}, &Error{"whose interval is " + strings.TrimSpace(rest) + "; it must be a whole number of seconds, at least 1s", ""}
	}
	return Expression{Every: every}, nil
}

// foreign matches syntax of other systems in a field, with a hint for each.
var foreign = []struct {
	pattern *regexp.Regexp
	hint    string
}{
	{regexp.MustCompile(`\?`), "write * for any"},
	{regexp.MustCompile(`(?i)^(L|LW|[0-9]*W|L-[0-9]+)$`), `write "0 0 1 * *" for the minute after the last day of a month, or let a task check the date`},
	{regexp.MustCompile(`#`), `for the second weekday of a month, combine it with days 8-14: "0 9 8-14 * MON"`},
	{regexp.MustCompile(`(?i)^[0-9A-Z]+L$`), `for the fourth weekday of a month, combine it with days 22-28: "0 9 22-28 * FRI"`},
	{regexp.MustCompile(`(?i)^H`), "write a number; jitter spreads starts at the same time"},
}

// parse returns the values of a field as a bit set.
func (f field) parse(text string) (set uint64, err error) {
	fail := func(hint, format string, args ...any) (uint64, error) {
		for _, other := range foreign {
			if other.pattern.MatchString(text) {
				hint = other.hint
			}
		}
		return 0, &Error{fmt.Sprintf(format, args...), hint}
	}
	for part := range strings.SplitSeq(text, ",") {
		span, step, hasStep := strings.Cut(part, "/")
		by := 1
		if hasStep {
			if by, err = strconv.Atoi(step); err != nil || by < 1 || strings.HasPrefix(step, "+") {
				return fail(f.hint(), "in which the step %q is not a positive whole number", step)
			}
		}
		from, to := f.low, f.high
		if span == "*" && f.high == 7 {
			to = 6
		}
		if span != "*" {
			first, last, isRange := strings.Cut(span, "-")
			var ok bool
			if from, ok = f.value(first); !ok {
				return fail(f.hint(), "in which %q is not a %s", first, f.name)
			}
			switch {
			case isRange:
				if to, ok = f.value(last); !ok {
					return fail(f.hint(), "in which %q is not a %s", last, f.name)
				}
				if to == 0 && from > 0 && f.high == 7 {
					to = 7 // MON-SUN
				}
				if to < from {
					return fail(f.wrapped(first, last), "in which the %s %q ends before it begins", f.name, span)
				}
			case !hasStep:
				to = from
			}
		}
		for value := from; value <= to; value += by {
			set |= 1 << value
		}
	}
	return set, nil
}

// wrapped returns a hint for a range that wraps around the end of the field.
func (f field) wrapped(first, last string) string {
	low := f.low
	if f.high == 7 {
		low = 1
	}
	if to, _ := f.value(last); to == low {
		return fmt.Sprintf("write %s-%d,%s", first, f.high, last)
	}
	return fmt.Sprintf("write %s-%d,%d-%s", first, f.high, low, last)
}

// value returns the value for a number or a name. It returns false if the text is neither.
func (f field) value(text string) (int, bool) {
	if f.shortest > 0 && len(text) >= f.shortest {
		folded := strings.ToLower(text)
		for i, word := range f.words {
			if strings.HasPrefix(word, folded) {
				return f.low + i, true
			}
		}
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= f.low && n <= f.high && !strings.HasPrefix(text, "+")
}

// hint describes the values that the field accepts.
func (f field) hint() string {
	switch {
	case f.high == 7:
		return "it takes 0-7 (0 and 7 are Sunday) or SUN to SAT, with *, lists, ranges and steps: MON-FRI"
	case f.words != nil:
		return "it takes 1-12 or JAN to DEC, with *, lists, ranges and steps: JAN,JUL"
	}
	return fmt.Sprintf("it takes %d-%d, with *, lists, ranges and steps: %d-%d/5", f.low, f.high, f.low, f.high)
}

// String returns the expression in the form that Temporal accepts.
func (e Expression) String() string {
	if e.Every > 0 {
		return "@every " + Duration(e.Every)
	}
	return e.text
}

// RestrictsDays reports whether the expression restricts both the day of the month and the weekday.
func (e Expression) RestrictsDays() bool {
	return e.Every == 0 && bits.OnesCount64(e.dayOfMonth) < 31 && bits.OnesCount64(e.dayOfWeek) < 7
}

// Duration formats a duration as in definitions, without trailing zeros: 1h, not 1h0m0s. It returns "" for 0.
func Duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
