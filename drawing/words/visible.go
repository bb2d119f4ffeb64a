package words

import (
	"strings"
	"unicode"
)

// Visible makes a text safe for a document. It removes control characters except tabs and newlines.
// Non-characters, invalid UTF-8 and characters that change the direction of text become U+FFFD.
func Visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return r
		case unicode.IsControl(r):
			return -1
		case unicode.Is(unicode.Bidi_Control, r), r == 0xfffe, r == 0xffff:
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}
