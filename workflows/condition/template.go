package condition

import (
	"iter"
	"slices"
	"strings"
)

const (
	templateStart   = "${{"
	templateEnd     = "}}"
	templateEscaped = "$" + templateStart // stands for templateStart itself
)

// Template is a text with expressions between `${{` and `}}`.
type Template struct {
	text  string
	parts []part
}

// part is either literal text or an expression.
type part struct {
	text   string
	offset int // of an expression in the text
	isExpr bool
}

// HasTemplate reports whether a text is more than itself: it holds `${{`, or
// `$${{`, which stands for `${{`.
func HasTemplate(text string) bool { return strings.Contains(text, templateStart) }

// ParseTemplate takes a text apart. Braces and quotes within an expression are
// CEL's: `${{ {'a': '}}'} }}` is one. The error is an *Error or nil, placed in
// the text.
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

// Literals returns what stands around the expressions, in order.
func (t *Template) Literals() []string {
	var all []string
	for _, p := range t.parts {
		if !p.isExpr {
			all = append(all, p.text)
		}
	}
	return all
}

// Places returns the expressions with the offsets, in bytes, of their `${{` in the text.
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

// expressionSize is the length of the expression that a text begins with, up to
// the `}}` that ends it; -1 when none does, and more than maxLength when it would
// be too long.
func expressionSize(text string) int {
	whole := len(text)
	text = text[:min(whole, maxLength+len(templateEnd))]
	open, last := 0, token{}
	for at := 0; at < len(text); {
		if open == 0 && strings.HasPrefix(text[at:], templateEnd) {
			return at
		}
		kind, size := next(text[at:], endsValue(last))
		t := token{kind: kind, text: text[at : at+size], start: at}
		switch {
		case t.is("{"):
			open++
		case t.is("}"):
			open = max(open-1, 0)
		}
		if kind != tokenSpace {
			last = t
		}
		at += size
	}
	if whole > len(text) {
		return maxLength + 1
	}
	return -1
}

// CheckTemplate checks every expression of a text, of kind Value whatever the
// scope says, and returns which ancestors they read, as Check does. The error is
// an *Error or nil, placed in the text.
func CheckTemplate(text string, scope Scope) (references []string, err error) {
	t, err := ParseTemplate(text)
	if err != nil {
		return nil, err
	}
	scope.Kind = Value
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

// place puts the faults of an expression into the text. The error is one that is no *Error.
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
