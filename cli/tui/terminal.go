package tui

import (
	"io"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/parser"
)

// sanitizer removes from text whatever makes a terminal do more than show it: escape sequences except colours, and
// control characters except tabs and newlines. A carriage return becomes a newline, so that text cannot be overwritten.
// Colours and unterminated sequences end with their line, because the next line may come from another program. Text may
// come in pieces of any size.
type sanitizer struct {
	parser *ansi.Parser
	color  bool // lets colours through
	text   []byte
	// painted is true while a colour is on, returned if the last character was a carriage return.
	painted, returned bool
}

func newSanitizer(color bool) *sanitizer {
	s := &sanitizer{parser: &ansi.Parser{}, color: color}
	s.parser.SetParamsSize(parser.MaxParamsSize)
	s.parser.SetDataSize(1) // the contents of string sequences are not needed
	s.parser.SetHandler(ansi.Handler{Print: s.print, Execute: s.control, HandleCsi: s.sequence})
	return s
}

// clean returns the printable form of p. The result is valid until the next call.
func (s *sanitizer) clean(p []byte) []byte {
	s.text = s.text[:0]
	for _, b := range p {
		cut := s.parser.State() == parser.Utf8State && b&0xc0 != 0x80
		if cut {
			s.print(utf8.RuneError)
		}
		if cut || b == '\n' {
			s.parser.Reset()
		}
		s.parser.Advance(b)
	}
	return s.text
}

// line returns the printable form of a text without a newline.
func (s *sanitizer) line(text string) string {
	s.parser.Reset()
	s.returned = false
	clean := string(s.clean([]byte(text)))
	if s.painted {
		clean += ansi.ResetStyle
		s.painted = false
	}
	return clean
}

func (s *sanitizer) print(r rune) {
	if unicode.IsControl(r) {
		return
	}
	s.endReturn()
	s.text = utf8.AppendRune(s.text, r)
}

func (s *sanitizer) control(b byte) {
	switch b {
	case '\t':
		s.endReturn()
		s.text = append(s.text, b)
	case '\r':
		s.endReturn()
		s.returned = true
	case '\n':
		s.newline()
	}
}

// endReturn turns a carriage return without a following newline into a newline.
func (s *sanitizer) endReturn() {
	if s.returned {
		s.newline()
	}
}

func (s *sanitizer) newline() {
	s.returned = false
	if s.painted {
		s.text = append(s.text, ansi.ResetStyle...)
		s.painted = false
	}
	s.text = append(s.text, '\n')
}

// sequence passes on a sequence that sets a colour.
func (s *sanitizer) sequence(cmd ansi.Cmd, params ansi.Params) {
	if !s.color || cmd != 'm' {
		return
	}
	s.endReturn()
	s.painted = false
	s.text = append(s.text, "\x1b["...)
	for i, p := range params {
		value := p.Param(0)
		s.painted = s.painted || value != 0
		s.text = strconv.AppendInt(s.text, int64(value), 10)
		switch {
		case i == len(params)-1:
		case p.HasMore():
			s.text = append(s.text, ':')
		default:
			s.text = append(s.text, ';')
		}
	}
	s.text = append(s.text, 'm')
}

// TerminalWriter writes only printable text to a terminal, see sanitizer. It is not safe for concurrent use.
type TerminalWriter struct {
	out   io.Writer
	clean *sanitizer
}

// NewTerminalWriter returns a writer for a terminal. With color, it lets colour sequences through.
func NewTerminalWriter(out io.Writer, color bool) *TerminalWriter {
	return &TerminalWriter{out: out, clean: newSanitizer(color)}
}

// Write writes the printable form of p.
func (t *TerminalWriter) Write(p []byte) (int, error) {
	if _, err := t.out.Write(t.clean.clean(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
