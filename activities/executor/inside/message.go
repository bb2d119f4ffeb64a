package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMessage bounds the text of an error, in bytes.
const maxMessage = 2000

// oneLine returns the text of an error in one line. What a terminal would obey, in a name for instance, is escaped.
func oneLine(err error) string {
	var s strings.Builder
	for i, r := range err.Error() {
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

// about returns an error with what was done and with the path, once.
func about(verb, path string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s %s: %w", verb, path, err)
}
