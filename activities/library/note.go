package library

import (
	"strings"
	"time"
)

// note is the text that a schedule shows to people, and that lists are made of: lists of schedules hold
// neither their action nor when they were changed.
type note struct {
	at          time.Time
	description string
}

const notePrefix = "stored "

func (n note) String() string {
	return strings.TrimSuffix(notePrefix+n.at.UTC().Format(time.RFC3339)+": "+n.description, ": ")
}

// parseNote is the inverse of String. Of any other text it makes a description.
func parseNote(text string) note {
	rest, ok := strings.CutPrefix(text, notePrefix)
	stamp, description, _ := strings.Cut(rest, ": ")
	at, err := time.Parse(time.RFC3339, stamp)
	if !ok || err != nil {
		return note{description: text}
	}
	return note{at, description}
}
