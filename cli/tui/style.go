package tui

import (
	"time"

	"github.com/charmbracelet/x/ansi"

	v1 "switchyard/proto/switchyard/v1"
)

// Style sets how text is formatted.
type Style struct {
	// Color colours states. Their words are always present.
	Color bool
	// Zone is the time zone for times of day, or nil for the local one.
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

// paint colours a text according to a state.
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

// clock formats a time of day.
func (s Style) clock(t time.Time) string {
	zone := s.Zone
	if zone == nil {
		zone = time.Local
	}
	return t.In(zone).Format(time.TimeOnly)
}

// cut shortens a text to a width in cells. A width of 0 or less means no limit.
func cut(text string, width int) string {
	if width <= 0 {
		return text
	}
	return ansi.Truncate(text, width, "…")
}
