package mask

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MinLength is the length in bytes from which a value is replaced wherever it occurs. Shorter values would match
// unrelated text, so they are replaced only if they are a whole line or a whole value.
const MinLength = 4

// wrapWidths are the line lengths at which the commands base64 and openssl wrap their output.
var wrapWidths = []int{76, 64}

// patternsOf returns the texts in which a value may appear, except texts that are too short. A blank value has none.
func patternsOf(value string) []string {
	if strings.TrimSpace(value) == "" {
		return nil
	}
	found := map[string]bool{}
	add := func(text string) {
		if len(text) >= MinLength {
			found[text] = true
		}
	}
	texts := func(text string) {
		add(text)
		add(url.QueryEscape(text))
		add(url.PathEscape(text))
		for _, escapeHTML := range []bool{true, false} {
			quoted := jsonText(text, escapeHTML)
			add(quoted)
			add(asciiJSON(quoted))
		}
	}
	texts(value)
	for line := range strings.SplitSeq(value, "\n") {
		texts(strings.TrimSpace(line))
	}
	if len(value) >= MinLength {
		base64Texts(value, add)
	}
	all := make([]string, 0, len(found))
	for text := range found {
		all = append(all, text)
	}
	return all
}

// jsonText returns a text as it appears between the quotes of a JSON string.
func jsonText(text string, escapeHTML bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(escapeHTML)
	if e.Encode(text) != nil {
		return ""
	}
	quoted := strings.TrimSuffix(b.String(), "\n")
	return quoted[1 : len(quoted)-1]
}

// asciiJSON returns the inside of a JSON string with all non-ASCII characters escaped.
func asciiJSON(quoted string) string {
	var b strings.Builder
	for _, r := range quoted {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}

// base64Texts adds the base64 encoding of a value by itself, and the part of the encoding that is the same wherever the
// value occurs in a longer text: the characters at its ends also encode bits of the neighbouring bytes.
func base64Texts(value string, add func(string)) {
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		for _, alone := range []string{value, value + "\n"} { // with a newline as echo prints it
			whole := encoding.EncodeToString([]byte(alone))
			add(whole)
			add(strings.TrimRight(whole, "="))
			for _, width := range wrapWidths {
				for rest := whole; len(whole) > width && rest != ""; rest = rest[min(width, len(rest)):] {
					add(rest[:min(width, len(rest))])
				}
			}
		}
		for before := range 3 {
			bits := 8 * before
			encoded := encoding.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
			add(encoded[(bits+5)/6 : (bits+8*len(value))/6])
		}
	}
}
