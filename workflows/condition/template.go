package condition

import (
	"iter"
	"slices"
	"strings"
)

const (
	templateStart   = "${{"
	templateEnd     = "}}"
	templateEscaped = "$" + templateStart // stands for a literal templateStart
)

// Template is a text with expressions between `${{` and `}}`.
type Template struct {
	text  string
	parts []part
}

// part is either literal text or an expression.
type part struct {
	text   string
	offset int // offset of an expression in the text
	isExpr bool
}

// HasTemplate reports whether a text contains `${{`, or `$${{`, which stands for a literal `${{`.
func HasTemplate(text string) bool { return strings.Contains(text, templateStart) }

// ParseTemplate splits a text into literals and expressions. Braces and quotes within an expression follow CEL: `${{ {'a':
// '}}'} }}` is one expression. The error is an *Error or nil, located in the text.
func ParseTemplate(text string) (*Template, error) {
	t := &Template{text: text}
	for at := 0; ; {
		start := strings.Index(text[at:], templateStart)
		if start < 0 {
			t.literal(text[at:])
			return t, nil
		}
		start += at
		if start > at && text[start-1] == '$' {
			t.literal(text[at:start-1] + templateStart)
			at = start + len(templateStart)
			continue
		}
		t.literal(text[at:start])
		from := start + len(templateStart)
		size := expressionSize(text[from:])
		switch {
		case size > maxLength:
			return nil, errorAt(text, start, "", "the expression is longer than %d bytes", maxLength)
		case size < 0 && strings.Contains(text[from:], templateEnd):
			return nil, errorAt(text, start, `close the quote, brace or comment before it; a line break in a text is \n, which YAML in double quotes writes as \\n`,
				"%s has no %s outside of quotes, braces and comments", templateStart, templateEnd)
		case size < 0:
			return nil, errorAt(text, start, "write "+templateEscaped+" for the characters "+templateStart, "%s has no %s", templateStart, templateEnd)
		case isBlank(text[from : from+size]):
			return nil, errorAt(text, start, "", "there is no expression between %s and %s", templateStart, templateEnd)
		}
		t.parts = append(t.parts, part{text: text[from : from+size], offset: from, isExpr: true})
		at = from + size + len(templateEnd)
	}
}

// Expressions returns the expressions, in order.
func (t *Template) Expressions() []string {
	var all []string
	for _, p := range t.parts {
		if p.isExpr {
			all = append(all, p.text)
		}
	}
	return all
}

// Literals returns the literal parts between the expressions, in order.
func (t *Template) Literals() []string {
	var all []string
	for _, p := range t.parts {
		if !p.isExpr {
			all = append(all, p.text)
		}
	}
	return all
}

// Places returns the expressions with the byte offset of their `${{` in the text.
func (t *Template) Places() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for _, p := range t.parts {
			if p.isExpr && !yield(p.offset-len(templateStart), p.text) {
				return
			}
		}
	}
}

func (t *Template) literal(text string) {
	if text != "" {
		t.parts = append(t.parts, part{text: text})
	}
}

// expressionSize returns the length of the expression at the start of a text, up to its closing `}}`. It returns -1 if there is
// none, and more than maxLength if the expression is too long.
func expressionSize(text string) int {
	whole := len(text)
	text = text[:min(whole, maxLength+len(templateEnd))]
	open := 0
	for t := range tokensOf(text) {
		switch {
		case open == 0 && strings.HasPrefix(text[t.start:], templateEnd):
			return t.start
		case t.is("{"):
			open++
		case t.is("}"):
			open = max(open-1, 0)
		}
	}
	if whole > len(text) {
		return maxLength + 1
	}
	return -1
}

// CheckTemplate checks every expression of a text, as kind Message if that is the kind of the scope and otherwise as kind Value, and returns the ancestors that they read, like Check.
// The error is an *Error or nil, located in the text.
func CheckTemplate(text string, scope Scope) (references []string, err error) {
	t, err := ParseTemplate(text)
	if err != nil {
		return nil, err
	}
	if scope.Kind != Message {
		scope.Kind = Value | scope.Kind&inFinally
	}
	var problem *Error
	for _, p := range t.parts {
		if !p.isExpr {
			continue
		}
		read, err := Check(p.text, scope)
		placed, err := t.place(p, err)
		if err != nil {
			return nil, err
		}
		problem = addMore(problem, placed...)
		references = append(references, read...)
	}
	if problem != nil {
		return nil, problem
	}
	slices.Sort(references)
	return slices.Compact(references), nil
}

// place relocates the faults of an expression to the text. other is an error that is not an *Error.
func (t *Template) place(p part, err error) (faults []*Error, other error) {
	problem, ok := err.(*Error)
	if !ok {
		return nil, err
	}
	for _, one := range problem.each() {
		faults = append(faults, errorAt(t.text, p.offset+one.offset, one.Hint, "%s", one.Message))
	}
	return faults, nil
}
