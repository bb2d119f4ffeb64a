package web

import (
	"fmt"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// maxListed bounds the lines of a document on a page.
const maxListed = 3000

// listing is a document with its problems shown at their lines.
type listing struct {
	Label string
	Lines []listedLine
	More  int // lines not shown
}

// listedLine is a line of a document.
type listedLine struct {
	Number int
	Text   string
	Notes  []lineNote
}

// lineNote is a problem or a warning.
type lineNote struct {
	*v1.Problem
	IsWarning bool
}

// Where returns the position of the problem in the format of the CLI, or "".
func (n lineNote) Where() string {
	switch {
	case n.GetLine() > 0:
		return fmt.Sprintf("line %d, column %d", n.GetLine(), n.GetColumn())
	case n.GetPath() != "":
		return n.GetPath()
	}
	return ""
}

// notesOf returns problems and warnings as notes, problems first.
func notesOf(problems, warnings source.Problems) []lineNote {
	notes := make([]lineNote, 0, len(problems)+len(warnings))
	for _, p := range problems {
		notes = append(notes, lineNote{p, false})
	}
	for _, p := range warnings {
		notes = append(notes, lineNote{p, true})
	}
	return notes
}

// newListing returns a document with notes at their lines.
func newListing(label, text string, notes []lineNote) *listing {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	l := &listing{Label: label, More: max(0, len(lines)-maxListed)}
	for i, line := range lines[:len(lines)-l.More] {
		l.Lines = append(l.Lines, listedLine{Number: i + 1, Text: strings.TrimSuffix(line, "\r")})
	}
	for _, n := range notes {
		if at := int(n.GetLine()); at > 0 && at <= len(l.Lines) {
			l.Lines[at-1].Notes = append(l.Lines[at-1].Notes, n)
		}
	}
	return l
}
