package condition

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

const (
	// maxReadValues is the most values read by an expression that a message shows.
	maxReadValues = 8
	// maxReadBytes is the most bytes of these values that a message shows.
	maxReadBytes = 300
	// maxShownExpression is the most bytes of an expression that a message shows.
	maxShownExpression = 200
)

// selectionPath is a selection on a variable, as long as its keys are literal: parent.build.output.list[0] has the keys build,
// output, list and 0.
type selectionPath struct {
	variable string
	keys     []ref.Val // of type string or int
}

// String formats the path as an expression.
func (p selectionPath) String() string {
	var b strings.Builder
	b.WriteString(p.variable)
	for _, key := range p.keys {
		name, isName := key.(types.String)
		switch {
		case !isName:
			fmt.Fprintf(&b, "[%d]", key.Value())
		case isIdentifier(string(name)) && nameSize(string(name)) == len(name):
			b.WriteString("." + string(name))
		default:
			b.WriteString("['" + string(name) + "']")
		}
	}
	return b.String()
}

// selectionPaths returns the paths that a checked expression reads, in the order of its tree, without duplicates.
func selectionPaths(e ast.Expr) []selectionPath {
	var paths []selectionPath
	seen := map[string]bool{}
	within, bound := map[int64]bool{}, map[string]bool{}
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			bound[e.AsComprehension().IterVar()] = true
		}
		path, ok := pathOf(e)
		if !ok || within[e.ID()] || bound[path.variable] {
			return
		}
		ast.PreOrderVisit(e, ast.NewExprVisitor(func(part ast.Expr) { within[part.ID()] = true }))
		if text := path.String(); len(path.keys) > 0 && !seen[text] {
			seen[text] = true
			paths = append(paths, path)
		}
	}))
	return paths
}

// pathOf returns the path of an expression. ok is false if the expression is not a path.
func pathOf(e ast.Expr) (path selectionPath, ok bool) {
	switch e.Kind() {
	case ast.IdentKind:
		name := strings.TrimPrefix(e.AsIdent(), ".")
		return selectionPath{variable: name}, isVariableName(name)
	case ast.SelectKind:
		path, ok = pathOf(e.AsSelect().Operand())
		path.keys = append(path.keys, types.String(e.AsSelect().FieldName()))
		return path, ok
	case ast.CallKind:
		c := e.AsCall()
		if args := c.Args(); c.FunctionName() == operators.Index && len(args) == 2 && args[1].Kind() == ast.LiteralKind {
			switch key := args[1].AsLiteral().(type) {
			case types.String, types.Int:
				path, ok = pathOf(args[0])
				path.keys = append(path.keys, key)
				return path, ok
			}
		}
	}
	return selectionPath{}, false
}

// readValues formats the values that the program reads, such as
//
//	parent.build.exitCode is 1, parent.build.output is {"n":"x"}
//
// If a path leads to nothing, readValues shows the last value on the way. It does not show a whole task or the whole workflow.
func (p *program) readValues(variables map[string]any) string {
	var shown []string
	add := func(path selectionPath, value ref.Val) {
		text := path.String() + " is " + shownValue(value)
		if !slices.Contains(shown, text) {
			shown = append(shown, text)
		}
	}
	for _, path := range selectionPaths(p.text.checked.NativeRep().Expr()) {
		value, ok := variables[path.variable].(ref.Val)
		if !ok {
			continue
		}
		known := 0
		for _, key := range path.keys {
			indexer, ok := value.(traits.Indexer)
			if !ok {
				break
			}
			next := indexer.Get(key)
			if types.IsUnknownOrError(next) {
				break
			}
			value = next
			known++
		}
		if _, whole := value.(*object); whole || known == 0 {
			continue
		}
		add(selectionPath{path.variable, path.keys[:known]}, value)
	}
	if more := len(shown) - maxReadValues; more > 0 {
		shown = append(shown[:maxReadValues], strconv.Itoa(more)+" more")
	}
	return cut(strings.Join(shown, ", "), maxReadBytes)
}

// shownValue formats a value for people.
func shownValue(value ref.Val) string {
	if text, ok := value.(types.String); ok {
		return strconv.Quote(cut(string(text), maxShown))
	}
	w := jsonWriter{room: 64 << 10}
	made, err := w.toJSON(value)
	if err != nil {
		return "a " + value.Type().TypeName() + " that is too large to show"
	}
	return Shown(made)
}

// shownExpression formats an expression for people, on one line.
func shownExpression(expr string) string {
	return "`" + cut(strings.Join(strings.Fields(expr), " "), maxShownExpression) + "`"
}
