package historyv1

import (
	"fmt"
	"strconv"
)

// The data level numbers the meanings of what Switchyard stores: the layout of the store, its values, and the messages in histories.
// readable is the highest level that this program understands, and written is the level of what it stores.
//
// A change needs a new level if a program of the previous level would misread what is stored: if a field, a key or a word gets another
// meaning. Raise readable in the release that learns to read the level, and written one release later, so that an upgrade can be
// rolled back, and gateways of both releases can serve one fleet.
//
// Tests set both through flags of the linker.
var readable, written = "1", "1"

// ReadableDataLevel returns the highest data level that this program understands.
func ReadableDataLevel() int { return parseDataLevel(readable) }

// WrittenDataLevel returns the data level of what this program stores.
func WrittenDataLevel() int { return parseDataLevel(written) }

func parseDataLevel(text string) int {
	level, err := strconv.Atoi(text)
	if err != nil || level < 1 {
		panic(fmt.Sprintf("the data level %q is not a number from 1 on", text))
	}
	return level
}

// NewerDataError is the error of data that a newer program has written and this one would misread.
type NewerDataError struct {
	// What names the data, such as "the store /srv/store".
	What string
	// Level is the data level of the data, or 0 if the data has parts that this program does not know.
	Level int
	// By is the version that has raised the level, or "" if it is unknown.
	By string
}

// Error names the data, both levels and the remedy.
func (e *NewerDataError) Error() string {
	if e.Level == 0 {
		return e.What + " was written by a newer Switchyard, and has parts that this one does not know; upgrade this program"
	}
	by := "a newer version"
	if e.By != "" {
		by = e.By
	}
	return fmt.Sprintf("%s has the data level %d since %s has used it, and this Switchyard understands %d; start that version or a later one instead", e.What, e.Level, by, ReadableDataLevel())
}
