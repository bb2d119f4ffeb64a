package podspec

import (
	"strconv"
	"strings"
)

// Problem is a fault of a spec.
type Problem struct {
	// Path leads from the spec to the faulty value: names of fields or keys as strings, and indices of lists as ints.
	Path []any
	// AtKey is set if the field itself is at fault rather than its value.
	AtKey bool
	// Text describes the problem and names its path.
	Text string
	// Hint is how to correct it; may be empty.
	Hint string
}

// String returns the problem on one line.
func (p Problem) String() string {
	if p.Hint == "" {
		return p.Text
	}
	return p.Text + " (" + p.Hint + ")"
}

// path is a Problem.Path under construction.
type path []any

// below returns a longer path. It shares no memory with p.
func (p path) below(steps ...any) path {
	return append(p[:len(p):len(p)], steps...)
}

// String formats the path for people, such as "spec.template.spec.containers[0].image".
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

// maxQuoted is the most characters of a value that a message repeats.
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
	// open is set once a part of the spec is not known yet or cannot be read. A value that seems to be missing may then be
	// there.
	open bool
}

func (r *report) add(at path, text, hint string) {
	r.problems = append(r.problems, Problem{Path: at, Text: text, Hint: hint})
}

func (r *report) addKey(at path, text, hint string) {
	r.problems = append(r.problems, Problem{Path: at, AtKey: true, Text: text, Hint: hint})
}
