package podspec

import (
	"strconv"
	"strings"
)

// Problem is a fault of a spec.
type Problem struct {
	// Path leads from the spec to the place: names of fields or keys as strings, and indices of lists as ints.
	Path []any
	// AtKey reports whether the fault is the field itself, and not its value.
	AtKey bool
	// Text says what is wrong, and names the place.
	Text string
	// Hint says what helps; may be empty.
	Hint string
}

// String returns the problem as one line.
func (p Problem) String() string {
	if p.Hint == "" {
		return p.Text
	}
	return p.Text + " (" + p.Hint + ")"
}

// path is Problem.Path while it is built.
type path []any

// below returns the path of a place further down. It shares no memory with p.
func (p path) below(steps ...any) path {
	return append(p[:len(p):len(p)], steps...)
}

// String renders the path as people write it, such as "spec.template.spec.containers[0].image".
func (p path) String() string {
	var b strings.Builder
	b.WriteString("spec")
	for _, step := range p {
		switch step := step.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(step) + "]")
		case string:
			if isPlainKey(step) {
				b.WriteString("." + step)
			} else {
				b.WriteString("[" + quote(step) + "]")
			}
		}
	}
	return b.String()
}

func isPlainKey(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// maxQuoted bounds how much of a value a message repeats, in characters.
const maxQuoted = 60

func quote(text string) string {
	if runes := []rune(text); len(runes) > maxQuoted {
		text = string(runes[:maxQuoted]) + "..."
	}
	return strconv.Quote(text)
}

// report collects the problems of a spec.
type report struct {
	problems []Problem
	// open is set once a part of the spec is not known yet, or cannot be read: what seems to be missing may be there.
	open bool
}

func (r *report) add(at path, text, hint string) {
	r.problems = append(r.problems, Problem{Path: at, Text: text, Hint: hint})
}

func (r *report) addKey(at path, text, hint string) {
	r.problems = append(r.problems, Problem{Path: at, AtKey: true, Text: text, Hint: hint})
}
