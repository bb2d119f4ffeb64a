package condition

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/nearest"
)

// wordAliases maps words of other systems for states and events, in folded form, to the words of Switchyard.
var wordAliases = map[string]string{
	"success": "completed", "succeeded": "completed", "successful": "completed", "complete": "completed", "done": "completed",
	"ok": "completed", "passed": "completed", "finished": "completed",
	"failure": "failed", "error": "failed", "errored": "failed", "timeout": "failed", "timedout": "failed", "upstreamfailed": "skipped",
	"fail": "failed", "oom": "killed_oom", "oomkilled": "killed_oom", "canceled": "cancelled", "aborted": "cancelled", "terminated": "killed", "dead": "dead_letter",
}

// vocabulary is the possible values of an expression that has only a few.
type vocabulary struct {
	// noun is what the words are, and is describes one of them for messages.
	noun, is string
	words    []string
}

// checkWords refuses a comparison of a state, an event, a trigger or the reason of a run with a word that is never its value, because
// its outcome would always be the same.
func (e *expression) checkWords() *Error {
	var problem *Error
	tree := e.checked.NativeRep()
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(part ast.Expr) {
		c, ok := comparisonOf(part)
		if problem != nil || !ok {
			return
		}
		for i, side := range c.sides {
			v := vocabularyOf(tree, side, e.kind)
			if v.words == nil || c.isPart(i) {
				continue
			}
			for _, word := range literals(c.sides[1-i]) {
				if text := textOf(word); !slices.Contains(v.words, text) && problem == nil && (text != "" || v.noun == "state") {
					problem = e.badWord(word, text, v)
				}
			}
		}
	}))
	return problem
}

// vocabularyOf returns the possible values of an expression: a state, an event, a trigger or the reason of a run. It returns no words for
// any other expression. kind is the kind of the whole expression.
func vocabularyOf(tree *ast.AST, e ast.Expr, kind Kind) vocabulary {
	if kind.sees(eventVariable) && isVariable(e, eventVariable) {
		return vocabulary{"event", "an event that a notification is about", v1.NotifyEvents()}
	}
	if e.Kind() != ast.SelectKind || e.AsSelect().IsTestOnly() {
		return vocabulary{}
	}
	of := tree.GetType(e.AsSelect().Operand().ID())
	if of == nil || of.Kind() != types.StructKind {
		return vocabulary{}
	}
	isOfRun := of.TypeName() == runTypeName
	switch field := e.AsSelect().FieldName(); {
	case field == "trigger" && isOfRun:
		return vocabulary{"trigger", "a trigger of a run", v1.Triggers()}
	case field == "reason" && isOfRun:
		return vocabulary{"reason", "a reason for which a run ends", v1.RunReasons()}
	case field != "state":
		return vocabulary{}
	case of.TypeName() == attemptTypeName:
		return vocabulary{"state", "a state that a retryable attempt ends in", v1.RetryableEndStates()}
	case isOfRun && kind.isInFinally():
		return vocabulary{"state", "a state that the tasks of a run end in", v1.RunEndStates()}
	case isOfRun:
		return vocabulary{"state", "a state that a run is in", v1.RunStates()}
	}
	return vocabulary{"state", "a state that a task ends in", v1.TaskEndStates()}
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

func (e *expression) badWord(literal ast.Expr, word string, v vocabulary) *Error {
	near := wordAliases[nearest.Fold(word)]
	if near == "" || !slices.Contains(v.words, near) {
		near = nearest.Word(word, v.words)
	}
	hint := "the " + v.noun + "s are " + strings.Join(v.words, ", ")
	if near != "" {
		hint = "did you mean '" + near + "'? T" + hint[1:]
	}
	return errorAt(e.source.written, e.offset(literal), hint, "'%s' is not %s", word, v.is)
}
