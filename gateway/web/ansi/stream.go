package ansi

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const escape = 0x1b

// Stream parses consecutive lines of terminal output. A style set on one line persists on the next. The zero value is a new
// stream.
type Stream struct{ style style }

// Parse returns the parsed line. The text must not contain a line break.
func (s *Stream) Parse(text string) Line {
	if isPlain(text) {
		if text == "" {
			return Line{}
		}
		return Line{[]run{{text, s.style}}}
	}
	var b buffer
	for i := 0; i < len(text); {
		c, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case c == escape:
			size = s.sequence(text[i:], &b)
		case c == '\r':
			b.at = 0
		case c == '\b':
			b.at = max(0, b.at-1)
		case c == '\t' || c >= ' ' && !unicode.IsControl(c) && !isInvisible(c):
			b.put(c, s.style)
		case isInvisible(c):
			shown := s.style
			shown.code = true
			for _, r := range fmt.Sprintf("<U+%04X>", c) {
				b.put(r, shown)
			}
		}
		i += size
	}
	return b.line()
}

// isPlain reports whether a line is printable ASCII and tabs.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c != '\t' && (c < ' ' || c >= 0x7f) {
			return false
		}
	}
	return true
}

// isInvisible reports whether a character is invisible or changes the direction of text. Joiners and emoji selectors count
// as visible because some scripts need them.
func isInvisible(c rune) bool {
	switch {
	case c < 0x7f, c == 0x200c, c == 0x200d:
		return false
	case c == 0x115f, c == 0x1160, c == 0x3164, c == 0xffa0, c == 0x034f, c == 0x17b4, c == 0x17b5, c == 0x2028, c == 0x2029:
		return true
	case c >= 0xe0100 && c <= 0xe01ef, c >= 0x180b && c <= 0x180f:
		return true
	}
	return unicode.Is(unicode.Cf, c)
}

// sequence processes the escape sequence at the start of text and returns its length in bytes.
func (s *Stream) sequence(text string, b *buffer) int {
	if len(text) == 1 {
		return 1
	}
	switch c := text[1]; {
	case c == '[':
		return s.control(text, b)
	case strings.IndexByte("]PX^_", c) >= 0:
		return 2 + lengthOfString(text[2:], c == ']')
	case c >= 0x20 && c <= 0x2f:
		i := 2
		for i < len(text) && text[i] >= 0x20 && text[i] <= 0x2f {
			i++
		}
		if i < len(text) && text[i] >= 0x30 && text[i] <= 0x7e {
			return i + 1
		}
		return 1
	case c >= 0x30 && c <= 0x7e:
		return 2
	}
	return 1
}

// control processes a control sequence: parameters, intermediates and a final byte.
func (s *Stream) control(text string, b *buffer) int {
	i := 2
	for i < len(text) && text[i] >= 0x30 && text[i] <= 0x3f {
		i++
	}
	parameters := text[2:i]
	from := i
	for i < len(text) && text[i] >= 0x20 && text[i] <= 0x2f {
		i++
	}
	if i == len(text) || text[i] < 0x40 || text[i] > 0x7e {
		return 2 // unterminated: the rest is text
	}
	if isPrivate := parameters != "" && parameters[0] >= 0x3c; from == i && !isPrivate {
		switch text[i] {
		case 'm':
			s.style.apply(parameters)
		case 'K':
			b.erase(number(parameters))
		}
	}
	return i + 1
}

// lengthOfString returns the length in bytes of a string sequence including its terminator, or 0 if it is unterminated.
func lengthOfString(text string, bell bool) int {
	for i := range len(text) {
		switch {
		case bell && text[i] == '\a':
			return i + 1
		case text[i] == escape && i+1 < len(text) && text[i+1] == '\\':
			return i + 2
		case text[i] == escape:
			return 0 // another sequence begins
		}
	}
	return 0
}

// buffer is a line of terminal cells that is being written.
type buffer struct {
	cells []cell
	at    int // cursor position; at most len(cells)
}

type cell struct {
	text  rune
	style style
}

// put writes a character at the cursor.
func (b *buffer) put(c rune, s style) {
	if b.at < len(b.cells) {
		b.cells[b.at] = cell{c, s}
	} else {
		b.cells = append(b.cells, cell{c, s})
	}
	b.at++
}

// erase erases a part of the line: 0 from the cursor on, 1 up to the cursor, 2 all of it.
func (b *buffer) erase(what int) {
	if what == 1 || what == 2 {
		for i := range min(b.at+1, len(b.cells)) {
			b.cells[i] = cell{text: ' '}
		}
	}
	if what == 0 || what == 2 {
		b.cells = b.cells[:b.at]
	}
}

// line returns the written line.
func (b *buffer) line() Line {
	var l Line
	var text strings.Builder
	for i, c := range b.cells {
		text.WriteRune(c.text)
		if i+1 == len(b.cells) || b.cells[i+1].style != c.style {
			l.runs = append(l.runs, run{text.String(), c.style})
			text.Reset()
		}
	}
	return l
}
