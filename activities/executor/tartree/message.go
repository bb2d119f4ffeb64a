package tartree

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

// OneLine returns a text, such as an error message, on one line of at most maxMessage bytes. It escapes characters that a
// terminal would interpret, such as those in a file name.
func OneLine(text string) string {
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

// WrapPath wraps an error with the operation and the path, in place of those that the error already names.
func WrapPath(verb, path string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s %s: %w", verb, path, err)
}
