package source

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Offset is a position inside a text value: its line and the character in that line, both from 1.
type Offset struct{ Line, Column int }

// OffsetOf returns the position of a byte in a text.
func OffsetOf(text string, i int) Offset {
	before := text[:i]
	return Offset{
		Line:   strings.Count(before, "\n") + 1,
		Column: utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1,
	}
}

// Inside maps a position in the value of a scalar to the document. It is exact for scalars on one line and for literal blocks.
// For others it returns the start of the value, and exact is false.
func (t *Lines) Inside(n *Node, o Offset) (at Position, exact bool) {
	if t == nil || n.At.Line == 0 {
		return Position{}, false
	}
	switch n.Style {
	case literal:
		return t.insideLiteral(n, o)
	case folded:
		return Position{n.At.Line + 1, 1 + indentation(t.Line(n.At.Line+1))}, false
	}
	source := t.runes(n.At.Line)
	if n.At.Column > len(source) {
		return n.At, false
	}
	want := o.Column - 1
	if o.Line != 1 {
		// A quoted text that contains \n has lines that the document does not have.
		lines := strings.SplitAfterN(n.Text, "\n", o.Line)
		if len(lines) < o.Line {
			return n.At, false
		}
		want += utf8.RuneCountInString(strings.Join(lines[:o.Line-1], ""))
	}
	column, ok := scan(source[n.At.Column-1:], n.Style, []rune(n.Text), want)
	if !ok {
		return n.At, false
	}
	return Position{n.At.Line, n.At.Column + column}, true
}

// scan walks the document text of a scalar in parallel with its value, up to the value's character want, and returns the
// distance walked. It returns false if the two differ, which means that the scalar continues in the next line, or begins with
// an anchor or tag.
func scan(source []rune, s Style, value []rune, want int) (int, bool) {
	i := 0
	if s != plain {
		quoteMark := '"'
		if s == singleQuoted {
			quoteMark = '\''
		}
		if len(source) == 0 || source[0] != quoteMark {
			return 0, false
		}
		i = 1
	}
	for k := range min(want, len(value)) {
		if i >= len(source) {
			return 0, false
		}
		width := 1
		switch {
		case source[i] == '\\' && (s == doubleQuoted || s == jsonQuoted):
			width = escapeWidth(source[i:])
		case source[i] == '\'' && s == singleQuoted:
			width = 2
		case source[i] != value[k]:
			return 0, false
		}
		i += width
	}
	return min(i, len(source)), true
}

// escapeWidth returns the number of characters in an escape sequence.
func escapeWidth(source []rune) int {
	if len(source) < 2 {
		return 1
	}
	switch source[1] {
	case 'x':
		return 4
	case 'u':
		if len(source) >= 12 && surrogate(string(source[:6])) == 1 {
			return 12
		}
		return 6
	case 'U':
		return 10
	}
	return 2
}

// insideLiteral maps a position in a block that begins with |.
func (t *Lines) insideLiteral(n *Node, o Offset) (Position, bool) {
	first := n.At.Line + 1
	indent := 0
	for line := first; line <= len(t.lines); line++ {
		if strings.TrimSpace(t.Line(line)) != "" {
			indent = indentation(t.Line(line))
			break
		}
	}
	at := Position{n.At.Line + o.Line, indent + o.Column}
	lines := strings.Split(n.Text, "\n")
	if o.Line > len(lines) || t.Line(at.Line) == "" {
		return n.At, false
	}
	// An indentation indicator (|2) makes leading spaces part of the value.
	at.Column -= indentation(firstNonBlank(lines))
	return at, true
}

func firstNonBlank(lines []string) string {
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			return line
		}
	}
	return ""
}

// indentation returns the number of blanks at the start of a line.
func indentation(line string) int {
	return utf8.RuneCountInString(line) - utf8.RuneCountInString(strings.TrimLeftFunc(line, unicode.IsSpace))
}
