package condition

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common"
)

// Error is a fault of an expression, located in the expression as its author wrote it.
type Error struct {
	// Line is counted from 1.
	Line int
	// Column is counted from 1, in characters.
	Column int
	// Message describes the fault on one line.
	Message string
	// Hint is how to correct the fault; empty if unknown.
	Hint string
	// Caret is CEL's own rendering over several lines: the message, the source line, and a ^ below the position.
	Caret string
	// More holds the other faults of the same text, without duplicates and limited in number.
	More []*Error

	offset int // in bytes of the expression
}

// Error returns position, message and hint on one line.
func (e *Error) Error() string {
	text := fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// Offset returns the position of the fault in bytes of the text.
func (e *Error) Offset() int { return e.offset }

// maxMore is the most faults of a text that are reported besides the first.
const maxMore = 20

// addMore attaches faults to the first fault of the same text, which may be nil, and returns the first.
func addMore(first *Error, faults ...*Error) *Error {
	for _, fault := range faults {
		switch {
		case fault == nil:
			continue
		case first == nil:
			fault.More = nil
			first = fault
			continue
		}
		// The same fault in several places of a text is reported once.
		isKnown := func(known *Error) bool { return known.Message == fault.Message }
		if !isKnown(first) && !slices.ContainsFunc(first.More, isKnown) && len(first.More) < maxMore {
			first.More = append(first.More, fault)
		}
	}
	return first
}

// each returns e and its other faults, or none if e is nil.
func (e *Error) each() []*Error {
	if e == nil {
		return nil
	}
	return append([]*Error{e}, e.More...)
}

// sourceName stands in for the file name in CEL's messages.
const sourceName = "condition"

// errorAt returns an error at a byte offset of the expression as written.
func errorAt(expr string, offset int, hint, format string, args ...any) *Error {
	offset = min(max(offset, 0), len(expr))
	before := expr[:offset]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	message := fmt.Sprintf(format, args...)
	shown := common.NewError(0, message, common.NewLocation(line, column))
	return &Error{
		Line:    line,
		Column:  column + 1,
		Message: message,
		Hint:    hint,
		Caret:   shown.ToDisplayString(common.NewStringSource(expr, sourceName)),
		offset:  offset,
	}
}
