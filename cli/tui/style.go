package tui

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	v1 "switchyard/proto/switchyard/v1"
)

// Style says how text is made.
type Style struct {
	// Color paints states. The words are there without it, too.
	Color bool
	// Zone is the time zone of times of day, or nil for the local one.
	Zone *time.Location
}

const (
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	faint  = "2"
	bold   = "1"
)

// tone returns the state whose colour a task has. One that is away with its node has not failed.
func tone(t *v1.Task) string {
	if v1.IsTaskAway(t.GetState(), t.GetNotice()) {
		return v1.TaskPaused
	}
	return t.GetState()
}

// paint colours a text by the state that it stands for.
func (s Style) paint(state, text string) string {
	switch state {
	case v1.TaskCompleted, v1.TaskStopped:
		return s.with(green, text)
	case v1.TaskRunning:
		return s.with(blue, text)
	case v1.TaskAssigned, v1.TaskQueued, v1.TaskCancelled, v1.TaskPaused, v1.RunPendingApproval:
		return s.with(yellow, text)
	case v1.TaskPending, v1.TaskSkipped:
		return s.with(faint, text)
	}
	return s.with(red, text)
}

func (s Style) with(code, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// clock is a time of day.
func (s Style) clock(t time.Time) string {
	zone := s.Zone
	if zone == nil {
		zone = time.Local
	}
	return t.In(zone).Format(time.TimeOnly)
}

// Duration is a span as people read it: 0.4s, 12s, 3m05s, 2h07m.
func Duration(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 9950*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// OneLine makes a text safe to put into a line on a terminal: what would move
// the cursor becomes a space or goes away.
func OneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, ansi.Strip(text))
	return strings.TrimSpace(text)
}

// cut shortens a text to a width in cells; 0 or less: as it is.
func cut(text string, width int) string {
	if width <= 0 {
		return text
	}
	return ansi.Truncate(text, width, "…")
}

// Shorten shortens a name to a width in cells. It cuts in the middle, and keeps the
// number of an instance.
func Shorten(name string, width int) string {
	if width <= 0 || ansi.StringWidth(name) <= width {
		return name
	}
	tail := (width - 1) / 2
	if at := strings.LastIndexByte(name, '['); at >= 0 && strings.HasSuffix(name, "]") {
		tail = len(name) - at
	}
	if tail > width-2 {
		return cut(name, width)
	}
	return ansi.Truncate(name, width-1-tail, "") + "…" + ansi.TruncateLeft(name, ansi.StringWidth(name)-tail, "")
}
