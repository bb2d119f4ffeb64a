package workspace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/workflows/structs"
)

// ContentError reports that a file written by a task cannot be used.
type ContentError struct {
	// File is the variable that names the file, such as "SWITCHYARD_OUTPUT".
	File string
	// Line counts from 1; 0 means that the fault is not in one line.
	Line   int
	Reason string
}

// Error returns the message.
func (e *ContentError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("%s, line %d: %s", e.File, e.Line, e.Reason)
}

// parse reads a JSON object or lines of these forms:
//
//	key=value          the value is a string, unchanged
//	key<<END           the value is the lines before the line END
//	# comment          skipped, as are empty lines
//
// The last of several equal keys wins. The error is a *ContentError without File.
func parse(text []byte) (*structpb.Struct, error) {
	if at := invalidUTF8(text); at >= 0 {
		return nil, &ContentError{Line: lineAt(text, at), Reason: "is not valid UTF-8"}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 {
		return &structpb.Struct{}, nil
	}
	switch trimmed[0] {
	case '{':
		return parseJSON(text)
	case '[', '"':
		return nil, &ContentError{Line: lineAt(text, bytes.IndexByte(text, trimmed[0])), Reason: "expected a JSON object or key=value lines"}
	}
	return parseLines(string(text))
}

func parseJSON(text []byte) (*structpb.Struct, error) {
	if fault, ok := errors.AsType[*structs.Fault](structs.CheckJSON(text)); ok {
		return nil, &ContentError{Line: lineAt(text, int(fault.Offset)-1), Reason: fault.Error()}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, jsonError(text, err)
	}
	end := int(decoder.InputOffset())
	if rest := bytes.TrimSpace(text[end:]); len(rest) > 0 {
		return nil, &ContentError{Line: lineAt(text, end+bytes.IndexByte(text[end:], rest[0])), Reason: "more text after the JSON object"}
	}
	s, err := structpb.NewStruct(object)
	if err != nil {
		return nil, &ContentError{Reason: err.Error()}
	}
	return s, nil
}

func jsonError(text []byte, err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &ContentError{Line: lineAt(text, int(syntax.Offset)-1), Reason: syntax.Error()}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &ContentError{Line: lineAt(text, len(text)), Reason: "the JSON object is incomplete"}
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &ContentError{Line: lineAt(text, int(kind.Offset)-1), Reason: kind.Value + " cannot be represented"}
	}
	return &ContentError{Reason: err.Error()}
}

func parseLines(text string) (*structpb.Struct, error) {
	s := &structpb.Struct{Fields: make(map[string]*structpb.Value)}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSuffix(lines[i], "\r")
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		at := strings.IndexByte(line, '=')
		marked := strings.Index(line, "<<")
		if marked >= 0 && (at < 0 || marked < at) {
			value, after, ok := heredoc(lines, i, line[marked+2:])
			if !ok {
				return nil, &ContentError{Line: i + 1, Reason: fmt.Sprintf("no line %q terminates the value", strings.TrimSpace(line[marked+2:]))}
			}
			if err := setValue(s, line[:marked], value, i); err != nil {
				return nil, err
			}
			i = after
			continue
		}
		if at < 0 {
			return nil, &ContentError{Line: i + 1, Reason: fmt.Sprintf("%q is not key=value", shorten(line))}
		}
		if err := setValue(s, line[:at], line[at+1:], i); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// heredoc returns the lines between line i and the line that equals the end mark, and the index of the latter.
func heredoc(lines []string, i int, mark string) (value string, end int, ok bool) {
	mark = strings.TrimSpace(mark)
	if mark == "" {
		return "", 0, false
	}
	for end := i + 1; end < len(lines); end++ {
		if strings.TrimSuffix(lines[end], "\r") == mark {
			return strings.Join(lines[i+1:end], "\n"), end, true
		}
	}
	return "", 0, false
}

func setValue(s *structpb.Struct, key, value string, line int) error {
	key = strings.TrimSpace(key)
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return &ContentError{Line: line + 1, Reason: fmt.Sprintf("%q is not a valid key", shorten(key))}
	}
	s.Fields[key] = structpb.NewStringValue(value)
	return nil
}

// invalidUTF8 returns the offset of the first byte that is not part of a valid character, or -1.
func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	at := 0
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

func lineAt(text []byte, offset int) int {
	return 1 + bytes.Count(text[:min(max(offset, 0), len(text))], []byte("\n"))
}

func shorten(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
