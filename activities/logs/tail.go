package logs

import (
	"strings"
	"unicode/utf8"
)

// tail keeps the last keep bytes of a stream, in at most twice as much memory.
type tail struct {
	keep  int
	bytes []byte
	total int64
}

func (t *tail) add(p []byte) {
	t.total += int64(len(p))
	p = p[max(0, len(p)-t.keep):]
	if len(t.bytes)+len(p) > 2*t.keep {
		n := copy(t.bytes, t.bytes[len(t.bytes)-(t.keep-len(p)):])
		t.bytes = t.bytes[:n]
	}
	t.bytes = append(t.bytes, p...)
}

// append adds the content of another tail.
func (t *tail) append(next *tail) {
	t.add(next.bytes)
	t.total += next.total - int64(len(next.bytes))
}

// clear starts a new stream.
func (t *tail) clear() { t.bytes, t.total = t.bytes[:0], 0 }

// text returns the end of the stream as at most keep bytes of valid UTF-8, and whether the stream is longer. Invalid
// bytes become U+FFFD.
func (t *tail) text() (text string, truncated bool) {
	end := t.bytes[max(0, len(t.bytes)-t.keep):]
	truncated = t.total > int64(len(end))
	if truncated {
		// The cut may be within a character, whose remaining bytes are not invalid output.
		end = end[partialRune(end):]
	}
	text = strings.ToValidUTF8(string(end), "\uFFFD")
	if over := len(text) - t.keep; over > 0 {
		text = text[over:]
		text = text[partialRune([]byte(text[:min(len(text), utf8.UTFMax)])):]
		truncated = true
	}
	return text, truncated
}

// partialRune returns how many bytes at the start of p may be the rest of a character that began earlier.
func partialRune(p []byte) int {
	n := 0
	for n < len(p) && n < utf8.UTFMax-1 && !utf8.RuneStart(p[n]) {
		n++
	}
	return n
}
