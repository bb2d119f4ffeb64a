package condition

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/nearest"
)

// stateAliases maps states of other systems, in folded form, to the states of tasks.
var stateAliases = map[string]string{
	"success": "completed", "succeeded": "completed", "successful": "completed", "complete": "completed", "done": "completed",
	"ok": "completed", "passed": "completed", "finished": "completed",
	"failure": "failed", "error": "failed", "errored": "failed", "timeout": "failed", "timedout": "failed", "upstreamfailed": "skipped",
	"oom": "killed_oom", "oomkilled": "killed_oom", "canceled": "cancelled", "aborted": "cancelled", "terminated": "killed", "dead": "dead_letter",
}

// checkStates refuses a comparison of a state with a word that is not a state, because its outcome would always be the same.
func (e *expression) checkStates() *Error {
	var problem *Error
	tree := e.checked.NativeRep()
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(part ast.Expr) {
		c, ok := comparisonOf(part)
		if problem != nil || !ok {
			return
		}
		for i, side := range c.sides {
			words, subject := stateWords(tree, side, e.kind)
			if words == nil || c.isPart(i) {
				continue
			}
			for _, word := range literals(c.sides[1-i]) {
				if text := textOf(word); !slices.Contains(words, text) && problem == nil {
					problem = e.badState(word, text, subject, words)
				}
			}
		}
	}))
	return problem
}

// stateWords returns the possible values of an expression that is a state and, for messages, the subject that is in the state. It returns
// nil for any other expression. kind is the kind of the whole expression.
func stateWords(tree *ast.AST, e ast.Expr, kind Kind) (words []string, subject string) {
	if e.Kind() != ast.SelectKind || e.AsSelect().IsTestOnly() || e.AsSelect().FieldName() != "state" {
		return nil, ""
	}
	switch of := tree.GetType(e.AsSelect().Operand().ID()); {
	case of == nil || of.Kind() != types.StructKind:
		return nil, ""
	case of.TypeName() == attemptTypeName:
		return v1.RetryableEndStates(), "a retryable attempt ends in"
	case of.TypeName() == runTypeName && kind.isInFinally():
		return v1.RunEndStates(), "the tasks of a run end in"
	case of.TypeName() == runTypeName:
		return v1.RunStates(), "a run is in"
	}
	return v1.TaskEndStates(), "a task ends in"
}

// literals returns the literal texts in an expression: the expression itself, the items of a list, or the keys of a map.
func literals(e ast.Expr) []ast.Expr {
	all := constants(e)
	if e.Kind() == ast.MapKind {
		for _, entry := range e.AsMap().Entries() {
			all = append(all, constants(entry.AsMapEntry().Key())...)
		}
	}
	return slices.DeleteFunc(all, func(literal ast.Expr) bool { return literal.AsLiteral().Type() != types.StringType })
}

func (e *expression) badState(literal ast.Expr, word, subject string, words []string) *Error {
	near := stateAliases[nearest.Fold(word)]
	if near == "" || !slices.Contains(words, near) {
		near = nearest.Word(word, words)
	}
	hint := "the states are " + strings.Join(words, ", ")
	if near != "" {
		hint = "did you mean '" + near + "'? The states are " + strings.Join(words, ", ")
	}
	return errorAt(e.source.written, e.offset(literal), hint, "'%s' is not a state that %s", word, subject)
}
