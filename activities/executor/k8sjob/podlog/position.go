package podlog

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// position identifies the newest copied line of a log. The zero value is the start of the log.
type position struct {
	// time is the latest timestamp of a line. lines is the number of lines from the first one with that timestamp on; 0
	// means that no line was copied yet.
	time  time.Time
	lines int64
	// earliest is the earliest timestamp of these lines.
	earliest time.Time
}

// next returns the position of the following line, given its timestamp.
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

// sinceMargin is how much before the lines of a position the log is read again, to find lines that are out of order.
const sinceMargin = time.Second

// since returns the time from which to read the log again, in whole seconds.
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

// parsePosition parses the result of position.String.
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
