package words

import (
	"strings"
	"unicode"
)

// Visible makes a text safe to put into a document: control characters but tabs and
// newlines go away, and what would change the direction of other text, or is no
// character, becomes U+FFFD.
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
