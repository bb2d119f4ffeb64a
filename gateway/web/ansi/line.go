package ansi

import (
	"html"
	"html/template"
	"strings"
	"unicode/utf8"
)

// Line is a line as a terminal would show it: runs of text, each in one style.
type Line struct{ runs []run }

// run is a piece of a line in a single style.
type run struct {
	text  string
	style style
}

// Text returns the visible text.
func (l Line) Text() string {
	if len(l.runs) == 1 {
		return l.runs[0].text
	}
	var text strings.Builder
	for _, r := range l.runs {
		text.WriteString(r.text)
	}
	return text.String()
}

// HTML returns the line as HTML.
func (l Line) HTML() template.HTML {
	var out strings.Builder
	for _, r := range l.runs {
		r.style.wrap(&out, html.EscapeString(r.text))
	}
	return template.HTML(out.String())
}

// Marked returns the line as HTML with mark elements around marks, which are ascending byte ranges of Text.
func (l Line) Marked(marks [][2]int) template.HTML {
	var out strings.Builder
	at := 0
	for _, r := range l.runs {
		var piece strings.Builder
		from, end := at, at+len(r.text)
		for len(marks) > 0 && marks[0][0] < end {
			begin, stop := max(marks[0][0], from), min(marks[0][1], end)
			if begin > from {
				piece.WriteString(html.EscapeString(r.text[from-at : begin-at]))
			}
			if stop > begin {
				piece.WriteString("<mark>" + html.EscapeString(r.text[begin-at:stop-at]) + "</mark>")
			}
			from = max(from, stop)
			if marks[0][1] > end {
				break // the rest lies in the next run
			}
			marks = marks[1:]
		}
		piece.WriteString(html.EscapeString(r.text[from-at:]))
		r.style.wrap(&out, piece.String())
		at = end
	}
	return template.HTML(out.String())
}

// Find returns the byte ranges of text that match query, at most limit. The match ignores case if query has no upper-case
// letters.
func Find(text, query string, limit int) [][2]int {
	if query == "" {
		return nil
	}
	fold := query == strings.ToLower(query)
	var found [][2]int
	for at := 0; at < len(text) && len(found) < limit; {
		begin, end := indexOf(text[at:], query, fold)
		if begin < 0 {
			break
		}
		found = append(found, [2]int{at + begin, at + end})
		at += end
	}
	return found
}

// indexOf returns the start and end of the first match of query in text, or -1, -1.
func indexOf(text, query string, fold bool) (begin, end int) {
	if !fold {
		if begin = strings.Index(text, query); begin < 0 {
			return -1, -1
		}
		return begin, begin + len(query)
	}
	lower := strings.ToLower(text)
	if len(lower) == len(text) {
		if begin = strings.Index(lower, query); begin < 0 || !utf8.RuneStart(text[begin]) {
			return -1, -1
		}
		return begin, begin + len(query)
	}
	// Lower-casing changed the byte length, so offsets in lower do not apply to text.
	length := utf8.RuneCountInString(query)
	for begin = range text {
		if end = begin + prefixOf(text[begin:], length); strings.EqualFold(text[begin:end], query) {
			return begin, end
		}
	}
	return -1, -1
}

// prefixOf returns the length in bytes of the first n runes of text.
func prefixOf(text string, n int) int {
	at := 0
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}
