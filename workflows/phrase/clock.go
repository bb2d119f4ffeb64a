package phrase

import "time"

// Clock formats a time of the current day for people in several time zones.
func Clock(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }

// Silence returns a text that a node has been silent since a time.
func Silence(node string, since time.Time) string {
	return "node " + node + " has been silent since " + Clock(since)
}
