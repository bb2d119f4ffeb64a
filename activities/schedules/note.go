package schedules

import (
	"strings"
	"time"
)

// Note is the text of a schedule's notes in Temporal, which the Temporal Web UI and lists of schedules show. Such a
// list contains neither what a schedule starts nor when it was changed, so the note of a stored workflow carries what
// our own lists show.
type Note struct {
	// StoredAt is when the definition was stored, or zero if the note does not contain it.
	StoredAt time.Time
	// ExpectedBy is the time of the day, such as "06:00", by which a run has to have completed, or "".
	ExpectedBy string
	// A2A is set if the definition is offered to other agents as a skill.
	A2A bool
	// Owner is the owner of the definition, or "". It contains no space and no colon.
	Owner string
	// Description is the description of the definition.
	Description string
	// Said is the remark from when the schedule was last paused or resumed.
	Said string
}

const (
	notePrefix = "stored "
	// dueMark precedes the time by which a run has to have completed, if the definition has one.
	dueMark = " due by "
	// a2aMark follows the times if the definition is offered to other agents.
	a2aMark = " as an A2A skill"
	// ownerMark precedes the owner, if the definition has one.
	ownerMark = " for "
	// saidMark begins the line with the remark.
	saidMark = "\n-- "
)

// String returns the text of the note.
func (n Note) String() string {
	if n.StoredAt.IsZero() {
		return n.Said
	}
	text := notePrefix + n.StoredAt.UTC().Format(time.RFC3339)
	if n.ExpectedBy != "" {
		text += dueMark + n.ExpectedBy
	}
	if n.A2A {
		text += a2aMark
	}
	if n.Owner != "" {
		text += ownerMark + n.Owner
	}
	text = strings.TrimSuffix(text+": "+n.Description, ": ")
	if n.Said != "" {
		text += saidMark + n.Said
	}
	return text
}

// ParseNote parses the result of String. It treats any other text, which Temporal's own tools write, as a remark.
func ParseNote(text string) Note {
	rest, ok := strings.CutPrefix(text, notePrefix)
	said := ""
	if at := strings.LastIndex(rest, saidMark); at >= 0 {
		rest, said = rest[:at], rest[at+len(saidMark):]
	}
	stamp, description, _ := strings.Cut(rest, ": ")
	stamp, owner, _ := strings.Cut(stamp, ownerMark)
	stamp, a2a := strings.CutSuffix(stamp, a2aMark)
	stamp, due, _ := strings.Cut(stamp, dueMark)
	at, err := time.Parse(time.RFC3339, stamp)
	if !ok || err != nil {
		return Note{Said: text}
	}
	return Note{at, due, a2a, owner, description, said}
}
