package definition

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// offset is a place inside a text value: its line and the character in that line, both from 1.
type offset struct{ line, column int }

// offsetOf returns the place of a byte of a text.
func offsetOf(text string, i int) offset {
	before := text[:i]
	return offset{
		line:   strings.Count(before, "\n") + 1,
		column: utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1,
	}
}

// inside maps a place in the value of a scalar to the document. It is exact for
// scalars on one line and for literal blocks; for others the position is where
// the value begins and exact is false.
func (t *text) inside(n *node, o offset) (at position, exact bool) {
	if t == nil || n.at.line == 0 {
		return position{}, false
	}
	switch n.style {
	case literal:
		return t.insideLiteral(n, o)
	case folded:
		return position{n.at.line + 1, 1 + indentation(t.line(n.at.line+1))}, false
	}
	source := t.runes(n.at.line)
	if n.at.column > len(source) {
		return n.at, false
	}
	want := o.column - 1
	if o.line != 1 {
		// A quoted text with \n in it has lines that the document does not have.
		lines := strings.SplitAfterN(n.text, "\n", o.line)
		if len(lines) < o.line {
			return n.at, false
		}
		want += utf8.RuneCountInString(strings.Join(lines[:o.line-1], ""))
	}
	column, ok := scan(source[n.at.column-1:], n.style, []rune(n.text), want)
	if !ok {
		return n.at, false
	}
	return position{n.at.line, n.at.column + column}, true
}

// scan walks the text of a scalar in the document beside its value up to the
// value's character want, and returns how far that is. Not ok: they part, so
// that the scalar goes on in the next line, or begins with an anchor or tag.
func scan(source []rune, s style, value []rune, want int) (int, bool) {
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

// escapeWidth is how many characters an escape for one character takes.
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

// insideLiteral maps a place in a block that begins with |.
func (t *text) insideLiteral(n *node, o offset) (position, bool) {
	first := n.at.line + 1
	indent := 0
	for line := first; line <= len(t.lines); line++ {
		if strings.TrimSpace(t.line(line)) != "" {
			indent = indentation(t.line(line))
			break
		}
	}
	at := position{n.at.line + o.line, indent + o.column}
	lines := strings.Split(n.text, "\n")
	if o.line > len(lines) || t.line(at.line) == "" {
		return n.at, false
	}
	// An indentation indicator (|2) makes leading spaces part of the value.
	at.column -= indentation(firstNonBlank(lines))
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

// indentation counts the blanks that a line begins with.
func indentation(line string) int {
	return utf8.RuneCountInString(line) - utf8.RuneCountInString(strings.TrimLeftFunc(line, unicode.IsSpace))
}
