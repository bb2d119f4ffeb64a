package historyv1

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The data level numbers the meanings of what Switchyard stores: the layout of the store, its values, and the messages in histories.
// readable is the highest level that this program understands, and written is the level of what it stores.
//
// A change needs a new level if a program of the previous level would misread what is stored: if a field, a key or a word gets another
// meaning, or if a new field must not be ignored. Fields of the input or the state of a run need none: a program that does not know
// them leaves the run to a newer one. Raise readable in the release that learns to read the level, and written one release later, so
// that an upgrade can be rolled back, and gateways of both releases can serve one fleet.
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
	since := ""
	if e.By != "" {
		since = fmt.Sprintf(" since %s has used it", e.By)
	}
	return fmt.Sprintf("%s has the data level %d%s, and this Switchyard understands %d; start that version or a later one instead", e.What, e.Level, since, ReadableDataLevel())
}

// CheckKnown returns a *NewerDataError if a message has a field that this program does not know. what names the message.
func CheckKnown(what string, m proto.Message) error {
	if hasUnknown(m.ProtoReflect()) {
		return &NewerDataError{What: what}
	}
	return nil
}

func hasUnknown(m protoreflect.Message) bool {
	found := len(m.GetUnknown()) > 0
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case found || field.Message() == nil:
		case field.IsList():
			for i := range value.List().Len() {
				found = found || hasUnknown(value.List().Get(i).Message())
			}
		case !field.IsMap():
			found = hasUnknown(value.Message())
		case field.MapValue().Message() != nil:
			value.Map().Range(func(_ protoreflect.MapKey, value protoreflect.Value) bool {
				found = hasUnknown(value.Message())
				return !found
			})
		}
		return !found
	})
	return found
}
