package condition

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
)

// maxPlain is the most selections in a plain expression.
const maxPlain = 32

// plain checks simple selections such as parent.build.output.version, which most templates are, without CEL, which takes fifty
// times as long. It returns false if the expression may be wrong; it cannot tell what is wrong.
func (s Scope) plain(expr string) (references []string, ok bool) {
	path := selections(expr)
	if len(path) == 0 {
		return nil, false
	}
	r, t := s.Kind.follow(path)
	if t == nil || !s.Kind.takes(t) {
		return nil, false
	}
	var found []reading
	if r != nil {
		found = []reading{*r}
	}
	references, problem := s.resolve(expr, found)
	return references, problem == nil
}

// selection is a name, or a key in brackets.
type selection struct {
	name   string
	offset int // of the name, or of the literal in brackets
	isKey  bool
}

// selections splits a.b['c'] into its selections. It returns nil if the expression is something else or needs a full check.
func selections(expr string) []selection {
	if len(expr) > maxLength {
		return nil
	}
	var path []selection
	tokens := tokenize(expr)
	for i := after(tokens, -1); i < len(tokens); i = after(tokens, i) {
		isKey := tokens[i].is("[")
		if isKey && len(path) > 0 || tokens[i].is(".") && len(path) > 0 {
			i = after(tokens, i)
		} else if len(path) > 0 {
			return nil
		}
		if i >= len(tokens) || len(path) == maxPlain {
			return nil
		}
		t := tokens[i]
		step := selection{name: t.text, offset: t.start, isKey: isKey}
		switch {
		case isKey:
			if t.kind != tokenString || !isPlainLiteral(t.text) {
				return nil
			}
			step.name = t.text[1 : len(t.text)-1]
			if i = after(tokens, i); i >= len(tokens) || !tokens[i].is("]") {
				return nil
			}
		case t.kind != tokenName || !isPlainName(t.text):
			return nil
		}
		path = append(path, step)
	}
	return path
}

// isPlainLiteral reports whether the value of a string literal is exactly the text between its quotes.
func isPlainLiteral(text string) bool {
	return len(text) >= 2 && text[0] == text[len(text)-1] && strings.Trim(text[:1], `'"`) == "" && !strings.ContainsFunc(text[1:len(text)-1], func(c rune) bool {
		return c == rune(text[0]) || c == '\\' || c < ' ' || c > '~'
	})
}

// isPlainName reports whether a name is valid in CEL in every position.
func isPlainName(name string) bool {
	switch name {
	case "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
		"namespace", "null", "package", "return", "true", "var", "void", "while":
		return false
	}
	return !strings.ContainsFunc(name, func(c rune) bool {
		return c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}

// follow returns what a path reads and its type. The type is nil if it is not known here.
func (k Kind) follow(path []selection) (*reading, *cel.Type) {
	head, rest := path[0], path[1:]
	data := func(more int) *cel.Type {
		if len(rest) > more {
			return cel.DynType
		}
		return cel.MapType(cel.StringType, cel.DynType)
	}
	switch {
	case head.isKey:
		return nil, nil
	case head.name == workflowVariable:
		switch {
		case len(rest) == 0 || rest[0].isKey:
			return nil, nil
		case rest[0].name == "context":
			return nil, data(1)
		case rest[0].name == inputVariable && len(rest) > 1:
			return &reading{offset: rest[1].offset, field: rest[1].name, isInput: true}, cel.DynType
		case len(rest) == 1 && slices.Contains([]string{"name", "runId"}, rest[0].name):
			return nil, cel.StringType
		}
		return nil, nil
	case !k.sees(parentVariable):
		return nil, nil
	case head.name == inputVariable && k.sees(inputVariable):
		return nil, data(0)
	case head.name == parentVariable:
		return followTask(rest)
	case k.shortens() && !isVariableName(head.name) && !isTypeName(head.name) && len(rest) > 0:
		r := &reading{task: head.name, offset: head.offset, field: rest[0].name, at: rest[0].offset, short: true}
		if rest[0].isKey {
			r.field = ""
		}
		return r, cel.DynType
	}
	return nil, nil
}

// followTask returns what the path after `parent` reads and its type.
func followTask(path []selection) (*reading, *cel.Type) {
	if len(path) < 2 || path[1].isKey {
		return nil, nil
	}
	field := path[1]
	r := &reading{task: path[0].name, offset: path[0].offset, field: field.name, at: field.offset}
	rest := path[2:]
	if field.name == "result" {
		if len(rest) == 0 || rest[0].isKey || slices.Contains(fanOutFields(), rest[0].name) {
			return nil, nil
		}
		field, rest = rest[0], rest[1:]
	}
	t := map[string]*cel.Type{
		"exitCode": cel.IntType, "count": cel.IntType, "completed": cel.IntType, "failed": cel.IntType,
		"stdout": cel.StringType, "stderr": cel.StringType, "state": cel.StringType,
		"stdoutTruncated": cel.BoolType, "stderrTruncated": cel.BoolType,
		"output": cel.DynType, "outputs": cel.ListType(cel.DynType),
	}[field.name]
	if len(rest) > 0 && field.name != "output" {
		return nil, nil
	}
	return r, t
}
