package mask

import (
	"bytes"
	"slices"
	"strings"
)

// line replaces each line that consists of exactly a short value.
type line struct {
	short []string
	// held is the beginning of a line that may become a short value.
	held []byte
	// passes is set if the current line cannot become a short value.
	passes bool
	out    []byte
}

// feed returns the part of the text that is final so far. The next call overwrites the result.
func (l *line) feed(p []byte) []byte {
	l.out = l.out[:0]
	for len(p) > 0 {
		if l.passes {
			n := bytes.IndexByte(p, '\n') + 1
			if n == 0 {
				n = len(p)
			}
			l.out, l.passes = append(l.out, p[:n]...), p[n-1] != '\n'
			p = p[n:]
			continue
		}
		c := p[0]
		p = p[1:]
		if c == '\n' {
			l.release()
			l.out = append(l.out, c)
			continue
		}
		if l.held = append(l.held, c); !l.mayBe() {
			l.out, l.held, l.passes = append(l.out, l.held...), l.held[:0], true
		}
	}
	return l.out
}

// end ends the text and returns the text that was held back.
func (l *line) end() []byte {
	l.out = l.out[:0]
	l.release()
	l.passes = false
	return l.out
}

// release appends the held line, which has ended, or its replacement to out.
func (l *line) release() {
	if text, isReturn := bytes.CutSuffix(l.held, []byte("\r")); slices.Contains(l.short, string(text)) {
		l.out = append(l.out, Replacement...)
		if isReturn {
			l.out = append(l.out, '\r')
		}
	} else {
		l.out = append(l.out, l.held...)
	}
	l.held = l.held[:0]
}

// mayBe reports whether the held line can become a short value, or is one followed by a carriage
// return.
func (l *line) mayBe() bool {
	text := strings.TrimSuffix(string(l.held), "\r")
	return slices.ContainsFunc(l.short, func(value string) bool {
		return len(text) == len(l.held) && strings.HasPrefix(value, text) || text == value
	})
}
