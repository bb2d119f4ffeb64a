package source

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Position is a position in a document: line and column, both from 1. The column counts characters, and a tab is one. The zero
// Position means no position.
type Position struct{ Line, Column int }

// Lines is a document split into lines.
type Lines struct {
	lines []string // without line breaks
	// These cache the last line that was accessed, as characters: a document of one long line can contain a thousand problems.
	last       int
	characters []rune
}

// newText splits a document in the same way as its parser, so that the line numbers agree: YAML has three more line breaks than
// JSON.
func newText(data []byte, yaml bool) *Lines {
	t := &Lines{}
	rest := string(data)
	for {
		end, width := lineBreak(rest, yaml)
		t.lines = append(t.lines, rest[:end])
		if width == 0 {
			return t
		}
		rest = rest[end+width:]
	}
}

func lineBreak(s string, yaml bool) (end, width int) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\n':
			return i, 1
		case '\r':
			if strings.HasPrefix(s[i:], "\r\n") {
				return i, 2
			}
			return i, 1
		case 0xc2:
			if yaml && strings.HasPrefix(s[i:], "\u0085") {
				return i, 2
			}
		case 0xe2:
			if yaml && strings.HasPrefix(s[i:], "\u2028") || yaml && strings.HasPrefix(s[i:], "\u2029") {
				return i, 3
			}
		}
	}
	return len(s), 0
}

// Line returns a line by its number, or "" if there is none.
func (t *Lines) Line(number int) string {
	if number < 1 || number > len(t.lines) {
		return ""
	}
	return t.lines[number-1]
}

// runes returns a line as characters. The slice is shared and must not be modified.
func (t *Lines) runes(number int) []rune {
	if number != t.last {
		t.last, t.characters = number, []rune(t.Line(number))
	}
	return t.characters
}

// invalidUTF8 returns the position of the first invalid UTF-8 byte.
func (t *Lines) invalidUTF8() (Position, bool) {
	for i, line := range t.lines {
		if utf8.ValidString(line) {
			continue
		}
		column := 1
		for len(line) > 0 {
			r, size := utf8.DecodeRuneInString(line)
			if r == utf8.RuneError && size == 1 {
				break
			}
			line = line[size:]
			column++
		}
		return Position{i + 1, column}, true
	}
	return Position{}, false
}

// These are the longest line in a snippet, and how much of a longer line is shown before the position.
const (
	snippetWidth = 160
	snippetLead  = 80
)

// snippet returns the line of a position with a marker under it. Characters that control a terminal are replaced one by one, so
// that the marker stays aligned and a document cannot control the terminal.
func (t *Lines) snippet(at Position) string { return excerpt(t.runes(at.Line), at) }

// hidden returns the snippet of a position with `***` in place of the rest of the line.
func (t *Lines) hidden(at Position) string {
	line := t.runes(at.Line)
	if end := at.Column - 1; end < len(line) {
		line = append(line[:end:end], []rune("***")...)
	}
	return excerpt(line, at)
}

func excerpt(line []rune, at Position) string {
	if len(line) == 0 {
		return ""
	}
	mark := min(at.Column-1, len(line))
	if len(line) > snippetWidth {
		from := max(0, min(mark-snippetLead, len(line)-snippetWidth))
		to := min(len(line), from+snippetWidth)
		cut := line[from:to:to]
		mark -= from
		if to < len(line) {
			cut = append(cut, []rune("...")...)
		}
		if from > 0 {
			cut = append([]rune("..."), cut...)
			mark += 3
		}
		line = cut
	}
	var b strings.Builder
	for _, r := range line {
		switch {
		case r == '\t':
			b.WriteByte(' ')
		case !unicode.IsPrint(r):
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
	}
	return strings.TrimRight(b.String(), " ") + "\n" + strings.Repeat(" ", mark) + "^"
}
