package guest

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMessage bounds what is quoted of a machine, in bytes.
const maxMessage = 2000

// oneLine returns what a machine says in one line. What a terminal would obey is escaped.
func oneLine(text string) string {
	text = strings.TrimSpace(text)
	var s strings.Builder
	for i, r := range text {
		if i > maxMessage {
			s.WriteString("...")
			break
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			s.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		s.WriteRune(r)
	}
	return s.String()
}
