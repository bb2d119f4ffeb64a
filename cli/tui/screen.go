package tui

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
)

// Screen is standard error. Without a picture it is a plain writer. With one, on a terminal, the picture stays at the
// bottom and written text appears above it, line by line. A Screen is safe for concurrent use.
type Screen struct {
	out   io.Writer
	size  func() (width, height int)
	clean *sanitizer // for a terminal, or nil to write everything unchanged

	mu      sync.Mutex
	picture []string
	partial []byte // start of a line that goes above the picture
}

// maxPartial is the most bytes of an unfinished line that are held back.
const maxPartial = 64 << 10

// NewScreen returns a screen that writes to out. size returns the current number of cells; Screen calls it only while
// there is a picture.
func NewScreen(out io.Writer, size func() (width, height int)) *Screen {
	return &Screen{out: out, size: size}
}

// NewTerminal returns a screen for a terminal, which passes on only printable text and, with color, colour sequences.
func NewTerminal(out io.Writer, color bool, size func() (width, height int)) *Screen {
	return &Screen{out: out, size: size, clean: newSanitizer(color)}
}

// Write writes text above the picture.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := len(p)
	if s.clean != nil {
		p = s.clean.clean(p)
	}
	if s.picture == nil {
		if _, err := s.out.Write(p); err != nil {
			return 0, err
		}
		return size, nil
	}
	s.partial = append(s.partial, p...)
	end := bytes.LastIndexByte(s.partial, '\n') + 1
	if end == 0 && len(s.partial) < maxPartial {
		return size, nil
	}
	var text strings.Builder
	s.erase(&text)
	if end == 0 {
		text.Write(s.partial)
		text.WriteByte('\n')
		end = len(s.partial)
	} else {
		text.Write(s.partial[:end])
	}
	s.partial = append(s.partial[:0], s.partial[end:]...)
	s.paint(&text)
	_, err := io.WriteString(s.out, text.String())
	return size, err
}

// Draw replaces the picture. Its lines must fit the width that size returns.
func (s *Screen) Draw(lines []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	s.rewind(&text)
	s.picture = append(make([]string, 0, len(lines)), lines...)
	if s.clean != nil {
		frame := newSanitizer(s.clean.color) // an unfinished sequence of Write is not part of the picture
		for i, line := range s.picture {
			s.picture[i] = frame.line(line)
		}
	}
	s.paint(&text)
	_, err := io.WriteString(s.out, text.String())
	return err
}

// Release leaves the picture in place and continues to write below it.
func (s *Screen) Release() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.picture = nil
	if len(s.partial) == 0 {
		return nil
	}
	_, err := s.out.Write(append(s.partial, '\n'))
	s.partial = nil
	return err
}

// Size returns the current size of the screen.
func (s *Screen) Size() (width, height int) { return s.size() }

// rewind moves the cursor to the beginning of the picture. It accounts for the lines that a narrower terminal has
// wrapped.
func (s *Screen) rewind(text *strings.Builder) {
	if len(s.picture) == 0 {
		return
	}
	width, _ := s.size()
	rows := 0
	for _, line := range s.picture {
		rows += 1 + max(0, ansi.StringWidth(line)-1)/max(width, 1)
	}
	text.WriteString("\x1b[" + strconv.Itoa(rows) + "A\r")
}

// erase removes the picture.
func (s *Screen) erase(text *strings.Builder) {
	s.rewind(text)
	text.WriteString("\x1b[J")
}

// paint overwrites the screen with the picture. It does not erase lines first, which would flicker.
func (s *Screen) paint(text *strings.Builder) {
	for _, line := range s.picture {
		text.WriteString(line)
		text.WriteString("\x1b[K\n")
	}
	text.WriteString("\x1b[J")
}
