package mask

import (
	"bytes"
	"slices"
	"strings"
)

// line replaces lines that are a short value, and nothing else.
type line struct {
	short []string
	// held is the beginning of a line that may be one.
	held []byte
	// passes says that the line that has begun is none.
	passes bool
	out    []byte
}

// feed returns what is certain of the text so far. The next call overwrites it.
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

// end returns what is held at the end of the text.
func (l *line) end() []byte {
	l.out = l.out[:0]
	l.release()
	l.passes = false
	return l.out
}

// release gives the line that is held, which has ended.
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

// mayBe reports whether the line that is held can become a short value, or that and the end of a line.
func (l *line) mayBe() bool {
	text := strings.TrimSuffix(string(l.held), "\r")
	return slices.ContainsFunc(l.short, func(value string) bool {
		return len(text) == len(l.held) && strings.HasPrefix(value, text) || text == value
	})
}
