package source

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// readJSON parses a JSON document, or returns nil if it is invalid. It uses its own scanner because encoding/json reports no
// positions of values, silently keeps the last of two equal keys, and replaces lone surrogates.
func (r *Report) readJSON(data []byte) *Node {
	j := &jsonReader{Report: r, data: string(data), at: Position{1, 1}}
	j.space()
	tree, ok := j.value(Root, 1)
	if !ok {
		return nil
	}
	if j.space(); j.next < len(j.data) {
		j.syntax("text follows the definition", "a file holds one definition")
		return nil
	}
	return tree
}

// jsonReader scans a document once, from start to end.
type jsonReader struct {
	*Report
	data string
	next int      // offset of the next byte
	at   Position // position of the next byte
}

// advance moves past n bytes that contain no line break.
func (j *jsonReader) advance(n int) {
	j.at.Column += utf8.RuneCountInString(j.data[j.next : j.next+n])
	j.next += n
}

func (j *jsonReader) peek() byte {
	if j.next < len(j.data) {
		return j.data[j.next]
	}
	return 0
}

func (j *jsonReader) space() {
	for j.next < len(j.data) {
		switch j.data[j.next] {
		case ' ', '\t':
			j.advance(1)
		case '\r', '\n':
			_, width := lineBreak(j.data[j.next:min(len(j.data), j.next+2)], false)
			j.next += width
			j.at = Position{j.at.Line + 1, 1}
		default:
			return
		}
	}
}

// syntax reports that the document is not JSON from here on.
func (j *jsonReader) syntax(message, hint string) {
	if hint == "" {
		switch c := j.peek(); {
		case c == '/' || c == '#':
			hint = "JSON has no comments"
		case c == '\'':
			hint = "JSON strings need double quotes"
		}
	}
	if j.next >= len(j.data) {
		message = "the document ends too early: " + message
	}
	j.Add(j.at, Root, "this is not JSON: "+message, hint)
}

func (j *jsonReader) value(p *Path, depth int) (*Node, bool) {
	if depth > maxDepth {
		j.Add(j.at, p, tooDeep, "")
		return nil, false
	}
	at := j.at
	switch c := j.peek(); {
	case c == '{':
		return j.object(p, depth)
	case c == '[':
		return j.array(p, depth)
	case c == '"':
		text, ok := j.string(p)
		return &Node{Kind: Str, Style: jsonQuoted, At: at, Text: text}, ok
	case c == '-' || '0' <= c && c <= '9':
		return j.number(p)
	}
	n := &Node{At: at}
	switch rest := j.data[j.next:]; {
	case strings.HasPrefix(rest, "null"):
		n.Text = "null"
	case strings.HasPrefix(rest, "true"):
		n.Kind, n.Text, n.Truth = Boolean, "true", true
	case strings.HasPrefix(rest, "false"):
		n.Kind, n.Text = Boolean, "false"
	default:
		j.syntax("a value is missing", "")
		return nil, false
	}
	j.advance(len(n.Text))
	return n, true
}

func (j *jsonReader) object(p *Path, depth int) (*Node, bool) {
	m := &Node{Kind: Mapping, At: j.at}
	seen := map[string]Position{}
	j.advance(1)
	if j.space(); j.peek() == '}' {
		j.advance(1)
		return m, true
	}
	for {
		at := j.at
		if j.peek() != '"' {
			j.syntax("a key in double quotes is missing", "")
			return nil, false
		}
		key, ok := j.string(p)
		if !ok {
			return nil, false
		}
		if j.space(); j.peek() != ':' {
			j.syntax("':' is missing after a key", "")
			return nil, false
		}
		j.advance(1)
		j.space()
		value, ok := j.value(p.Key(key), depth+1)
		if !ok {
			return nil, false
		}
		if before, twice := seen[key]; twice {
			j.addDuplicate(at, p.Key(key), before)
		} else {
			seen[key] = at
			m.Entries = append(m.Entries, Entry{key, at, value})
		}
		if more, ok := j.comma('}'); !more {
			return m, ok
		}
	}
}

func (j *jsonReader) array(p *Path, depth int) (*Node, bool) {
	list := &Node{Kind: Sequence, At: j.at}
	j.advance(1)
	if j.space(); j.peek() == ']' {
		j.advance(1)
		return list, true
	}
	for {
		item, ok := j.value(p.Item(len(list.Items)), depth+1)
		if !ok {
			return nil, false
		}
		list.Items = append(list.Items, item)
		if more, ok := j.comma(']'); !more {
			return list, ok
		}
	}
}

// comma moves past a comma, or past the end of a list or object.
func (j *jsonReader) comma(end byte) (more, ok bool) {
	j.space()
	switch j.peek() {
	case end:
		j.advance(1)
		return false, true
	case ',':
		j.advance(1)
		if j.space(); j.peek() == end {
			j.syntax("nothing follows the comma", "remove the last comma")
			return false, false
		}
		return true, true
	}
	j.syntax("',' or '"+string(end)+"' is missing", "")
	return false, false
}

// string reads a string. It reports a lone surrogate, which JSON can express and text cannot hold.
func (j *jsonReader) string(p *Path) (string, bool) {
	at := j.at
	end := j.next + 1
	for {
		if end >= len(j.data) {
			j.advance(len(j.data) - j.next)
			j.syntax("a string is not closed", "")
			return "", false
		}
		switch c := j.data[end]; {
		case c == '"':
			var text string
			if err := json.Unmarshal([]byte(j.data[j.next:end+1]), &text); err != nil {
				j.syntax("a string contains an invalid escape", "write a backslash as \\\\")
				return "", false
			}
			if strings.ContainsRune(text, utf8.RuneError) && loneSurrogate(j.data[j.next:end]) {
				j.Add(at, p, "the text contains half of a surrogate pair", "")
			}
			j.advance(end + 1 - j.next)
			return text, true
		case c < ' ':
			j.advance(end - j.next)
			j.syntax("a string contains a line break or control character", "write it as an escape such as \\n, and close every string")
			return "", false
		case c == '\\':
			end++
		}
		end++
	}
}

// loneSurrogate reports whether a JSON string contains an escape that is half of a surrogate pair.
func loneSurrogate(s string) bool {
	for i := 0; i+5 < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		if s[i+1] != 'u' {
			i++
			continue
		}
		high := surrogate(s[i:])
		if high == 0 {
			i += 5
			continue
		}
		if high == 1 && surrogate(s[min(len(s), i+6):]) == 2 {
			i += 11
			continue
		}
		return true
	}
	return false
}

// surrogate returns 1 for the escape of a high surrogate, 2 for a low one, and 0 otherwise.
func surrogate(s string) int {
	if len(s) < 6 || s[:2] != `\u` {
		return 0
	}
	c, err := strconv.ParseUint(s[2:6], 16, 32)
	switch {
	case err != nil || c < 0xd800 || c > 0xdfff:
		return 0
	case c < 0xdc00:
		return 1
	}
	return 2
}

func (j *jsonReader) number(p *Path) (*Node, bool) {
	n := &Node{Kind: Number, At: j.at}
	end := j.next
	for end < len(j.data) && strings.IndexByte("+-.eE0123456789", j.data[end]) >= 0 {
		end++
	}
	n.Text = j.data[j.next:end]
	if !json.Valid([]byte(n.Text)) {
		j.syntax(Quote(n.Text)+" is not a number", "")
		return nil, false
	}
	n.Decimal = n.Text
	// A number out of range becomes infinite; the code that reads the number reports it.
	n.Value, _ = strconv.ParseFloat(n.Text, 64)
	j.advance(end - j.next)
	return n, true
}

// addDuplicate reports a duplicate key.
func (r *Report) addDuplicate(at Position, p *Path, before Position) {
	r.Add(at, p, Quote(p.Name)+" is repeated; the first is on line "+strconv.Itoa(before.Line), "")
}
