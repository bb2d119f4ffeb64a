package phrase

import "time"

// Clock returns a time of today, for texts that people in several time zones read.
func Clock(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }

// Silence returns that nothing has come from a node since a time.
func Silence(node string, since time.Time) string {
	return "node " + node + " has been silent since " + Clock(since)
}
