package tui

import (
	"time"

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

// cut shortens a text to a width in cells; 0 or less: as it is.
func cut(text string, width int) string {
	if width <= 0 {
		return text
	}
	return ansi.Truncate(text, width, "…")
}
