package podlog

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// position is the newest line up to which a log has been copied. The zero value is the start of the log.
type position struct {
	// time is the latest time of a line, and lines how many lines there are from the first one with that time on; 0: no
	// line has come yet.
	time  time.Time
	lines int64
	// earliest is the earliest time of these lines.
	earliest time.Time
}

// next returns the position of the line that follows, given its time.
func (p position) next(at time.Time) position {
	if p.lines == 0 || at.After(p.time) {
		return position{at, 1, at}
	}
	p.lines++
	if at.Before(p.earliest) {
		p.earliest = at
	}
	return p
}

// sinceMargin is how much earlier than the lines of a position the log is read again, for lines that come out of order.
const sinceMargin = time.Second

// since returns the time from which on the log is to be read again, in whole seconds.
func (p position) since() time.Time { return p.earliest.Add(-sinceMargin).Truncate(time.Second) }

// String returns "<time> <lines> <earliest time>", the last only if it differs from the first, or "" for the start of the log.
func (p position) String() string {
	if p.lines == 0 {
		return ""
	}
	text := p.time.UTC().Format(time.RFC3339Nano) + " " + strconv.FormatInt(p.lines, 10)
	if !p.earliest.Equal(p.time) {
		text += " " + p.earliest.UTC().Format(time.RFC3339Nano)
	}
	return text
}

// parsePosition is the inverse of String.
func parsePosition(text string) (position, error) {
	if text == "" {
		return position{}, nil
	}
	var p position
	fields := strings.Split(text, " ")
	malformed := fmt.Errorf("malformed position %q of a log", text)
	if len(fields) != 2 && len(fields) != 3 {
		return p, malformed
	}
	var err error
	if p.time, err = time.Parse(time.RFC3339Nano, fields[0]); err != nil {
		return p, malformed
	}
	if p.lines, err = strconv.ParseInt(fields[1], 10, 64); err != nil || p.lines <= 0 {
		return p, malformed
	}
	if p.earliest = p.time; len(fields) == 3 {
		if p.earliest, err = time.Parse(time.RFC3339Nano, fields[2]); err != nil || p.earliest.After(p.time) {
			return p, malformed
		}
	}
	return p, nil
}
