package schedules_test

import (
	"testing"
	"time"

	"switchyard/activities/schedules"
)

// TestNoteIsReadAsItWasWritten checks that ParseNote is the inverse of String.
func TestNoteIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	for text, want := range map[string]schedules.Note{
		"stored 2026-03-14T15:09:26Z":                                            {StoredAt: at},
		"stored 2026-03-14T15:09:26Z: says: hello":                               {StoredAt: at, Description: "says: hello"},
		"stored 2026-03-14T15:09:26Z due by 06:00":                               {StoredAt: at, ExpectedBy: "06:00"},
		"stored 2026-03-14T15:09:26Z due by 06:00 as an A2A skill for yard: x":   {StoredAt: at, ExpectedBy: "06:00", A2A: true, Owner: "yard", Description: "x"},
		"stored 2026-03-14T15:09:26Z as an A2A skill":                            {StoredAt: at, A2A: true},
		"stored 2026-03-14T15:09:26Z as an A2A skill: says: hello":               {StoredAt: at, A2A: true, Description: "says: hello"},
		"stored 2026-03-14T15:09:26Z for yard.git: says: hello":                  {StoredAt: at, Owner: "yard.git", Description: "says: hello"},
		"stored 2026-03-14T15:09:26Z as an A2A skill for yard: for all":          {StoredAt: at, A2A: true, Owner: "yard", Description: "for all"},
		"stored 2026-03-14T15:09:26Z as an A2A skill\n-- paused: a while":        {StoredAt: at, A2A: true, Said: "paused: a while"},
		"stored 2026-03-14T15:09:26Z: stored as an A2A skill: no":                {StoredAt: at, Description: "stored as an A2A skill: no"},
		"stored 2026-03-14T15:09:26Z as an A2A skill: first\nsecond\n-- resumed": {StoredAt: at, A2A: true, Description: "first\nsecond", Said: "resumed"},
		"by hand as an A2A skill: says hello":                                    {Said: "by hand as an A2A skill: says hello"},
		"stored elsewhere as an A2A skill: says hello":                           {Said: "stored elsewhere as an A2A skill: says hello"},
	} {
		if got := schedules.ParseNote(text); got != want || got.String() != text {
			t.Errorf("%q is read as %+v, and written as %q", text, got, got.String())
		}
	}
}
