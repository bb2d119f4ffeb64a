package source

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

var tooDeep = fmt.Sprintf("the document is nested deeper than %d levels", maxDepth)

// addYAMLError reports why the library cannot read a document.
func (r *Report) addYAMLError(data []byte, err error) {
	if second, ok := errors.AsType[errSecondDocument](err); ok {
		r.Add(Position{second.line, 1}, Root, "a second document begins here; a file holds one definition", "")
		return
	}
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	// The library gives the line where the surrounding value began, or none.
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if _, after, ok := strings.Cut(rest, ": "); ok {
			message = after
		}
	}
	switch {
	case strings.Contains(message, "exceeded max depth"):
		r.Add(Position{1, 1}, Root, tooDeep, "")
	case strings.Contains(message, "control characters are not allowed"):
		r.Add(r.Lines.firstControl(), Root, "control characters are not allowed", "")
	default:
		at := r.Lines.faultIn(message, r.yamlErrorPosition(data))
		r.Add(at, Root, "this is not YAML: "+message, yamlHint(message, r.Lines.Line(at.Line)))
	}
}

// byteReader reads a document byte by byte and counts the bytes.
type byteReader struct {
	data []byte
	read int
}

func (b *byteReader) Read(p []byte) (int, error) {
	if b.read >= len(b.data) {
		return 0, io.EOF
	}
	p[0] = b.data[b.read]
	b.read++
	return 1, nil
}

// yamlErrorPosition returns the approximate position of a syntax error. The library reports no column, and often the wrong
// line, but it reads no further than it must, so the error is about where it stops reading.
func (r *Report) yamlErrorPosition(data []byte) Position {
	in := &byteReader{data: data}
	if _, err := decodeYAML(in); err == nil {
		return Position{1, 1}
	}
	before := newText(data[:in.read], true)
	at := Position{len(before.lines), utf8.RuneCountInString(before.lines[len(before.lines)-1])}
	// The library looks one or two characters ahead, which may be on the next line.
	for at.Line > 1 && at.Column <= 1 && strings.TrimSpace(before.Line(at.Line)) == "" {
		at.Line--
		at.Column = utf8.RuneCountInString(before.Line(at.Line))
	}
	return Position{at.Line, max(1, at.Column)}
}

// faultIn moves a position back to the word at fault if the message identifies it: the library notices some faults only after
// it has read further.
func (t *Lines) faultIn(message string, at Position) Position {
	line := t.Line(at.Line)
	indent := indentation(line)
	if tab := strings.IndexByte(line, '\t'); tab >= 0 && tab < indent {
		return Position{at.Line, tab + 1}
	}
	if name, ok := strings.CutPrefix(message, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "'")
		if i := strings.Index(line, "*"+name); i >= 0 {
			return Position{at.Line, utf8.RuneCountInString(line[:i]) + 1}
		}
	}
	if strings.HasPrefix(message, "did not find expected") {
		// The library recognizes a key only a few characters after its colon.
		if colon := strings.IndexByte(line, ':'); colon >= 0 && at.Column <= colon+5 {
			return Position{at.Line, indent + 1}
		}
	}
	return at
}

// firstControl returns the position of the first character that YAML does not allow.
func (t *Lines) firstControl() Position {
	for i, line := range t.lines {
		column := 1
		for _, c := range line {
			if unicode.IsControl(c) && c != '\t' || c == 0xfffe || c == 0xffff {
				return Position{i + 1, column}
			}
			column++
		}
	}
	return Position{1, 1}
}

func yamlHint(message, line string) string {
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	switch {
	case strings.Contains(indent, "\t"):
		return "YAML is indented with spaces, not tabs"
	case strings.Contains(message, "mapping values are not allowed"):
		return "check the indentation, and put a value that holds \": \" in quotes"
	case strings.Contains(message, "cannot start any token"):
		return "put a value that begins with this character in quotes"
	case strings.Contains(message, "did not find expected key"), strings.Contains(message, "did not find expected '-'"):
		return "check the indentation of this line and of the lines above"
	case strings.Contains(message, "unexpected end of stream"):
		return "a quote is not closed"
	case strings.Contains(message, "unknown anchor"):
		return "an alias must follow its anchor; put a value that begins with * in quotes"
	}
	return ""
}
