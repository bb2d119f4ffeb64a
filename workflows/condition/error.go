package condition

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common"
)

// Error is what is wrong with an expression, placed in the expression as its
// author wrote it.
type Error struct {
	// Line is counted from 1.
	Line int
	// Column is counted from 1, in characters.
	Column int
	// Message says what is wrong, on one line.
	Message string
	// Hint says how to put it right; empty when that is not known.
	Hint string
	// Caret is CEL's own rendering over several lines: the message, the source
	// line, and a ^ below the place.
	Caret string

	offset int // in bytes of the expression
}

// Error gives place, message and hint on one line.
func (e *Error) Error() string {
	text := fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// sourceName stands where CEL would name a file.
const sourceName = "condition"

// errorAt makes an error at a byte offset of the expression as written.
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
