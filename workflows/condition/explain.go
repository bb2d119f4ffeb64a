package condition

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"switchyard/workflows/nearest"
)

// maxMessage is the maximum length of a message in bytes, because CEL quotes types and tokens in full, however long they are.
const maxMessage = 400

// explain rewrites CEL's message for people who do not know CEL's internals, and adds a hint for known mistakes.
func explain(message string, kind Kind) (plain, hint string) {
	switch {
	case strings.Contains(message, "recursion limit exceeded"), strings.Contains(message, "max recursion depth exceeded"):
		return "the expression nests too deeply", ""
	case strings.Contains(message, "error recovery"):
		return "the expression has too many syntax errors to locate", ""
	case strings.Contains(message, "mismatched input '<EOF>'"):
		return "the expression ends too early", ""
	}
	// The parser lists every token that it would have accepted.
	if i := strings.Index(message, " expecting {"); i >= 0 {
		message = message[:i]
	}
	plain = strings.ReplaceAll(strings.ReplaceAll(message, " (in container '')", ""), "\n", " ")
	plain = strings.ReplaceAll(plain, "'@in'", "'in'")
	plain = regexp.MustCompile(`'_?([^\s\w'"]{1,2})_'`).ReplaceAllString(plain, "'$1'")
	if len(plain) > maxMessage {
		plain = strings.ToValidUTF8(plain[:maxMessage], "") + "..."
	}
	if name, ok := quoted(plain, "undefined field '"); ok {
		fields := "a task has exitCode, stdout, stderr, state, output, artifacts and result, an artifact size, files and digest; workflow has name, runId, context and input"
		if kind.isInFinally() {
			fields = "a task has exitCode, stdout, stderr, state, reason, error, output, artifacts and result; run has " + strings.Join(runFieldNames(), ", ")
		}
		switch kind.base() {
		case Retry:
			fields = "an attempt has exitCode, stdout, stderr, state, reason and number; workflow has name, runId, context and input"
		case Notify, Message:
			fields = "run has " + strings.Join(runFieldNames(), ", ")
		}
		return plain, cmp.Or(nearest.DidYouMean(name, fieldNames(kind)), fields)
	}
	if name, ok := undeclared(plain); ok {
		return plain, cmp.Or(kind.nameHint(name), nearest.DidYouMean(name, kind.variables()),
			kind.noun()+" sees "+kind.visible()+"; text needs quotes: '"+name+"'")
	}
	switch {
	case strings.Contains(plain, noSelection):
		return plain, "the length of x is size(x)"
	case strings.Contains(plain, "no matching overload for '&&'"), strings.Contains(plain, "no matching overload for '||'"),
		strings.Contains(plain, "no matching overload for '!'"), strings.Contains(plain, "expected type 'bool'"):
		return plain, "CEL requires true or false there: compare, for instance x != ''"
	case strings.Contains(plain, "no matching overload for '=="), strings.Contains(plain, "no matching overload for '!="):
		return plain, "both sides must be of one type; int(x) and string(x) convert"
	}
	return plain, ""
}

// nameHint returns a hint for a name that has a meaning elsewhere but is not declared here, or "".
func (k Kind) nameHint(name string) string {
	if k.sees(inputVariable) && slices.Contains([]string{"item", "matrix", "index", "count"}, name) {
		return "of an instance it is input.item, input.index or input.count; commands have $SWITCHYARD_ITEM, too"
	}
	if isVariableName(name) && k.InFinally().sees(name) {
		return "only tasks in `finally` see " + name
	}
	return wordHints[name]
}

// noSelection is CEL's message for a field selection on a value without fields.
const noSelection = "does not support field selection"

// isAboutName reports whether a message is about an unknown name.
func isAboutName(message string) bool {
	return strings.Contains(message, "undeclared reference to '") || strings.Contains(message, "undefined field '")
}

// undeclared returns the undeclared name that a message is about. It returns false for other messages.
func undeclared(message string) (string, bool) {
	return quoted(message, "undeclared reference to '")
}

// quoted returns the text between the prefix and the closing quote.
func quoted(text, prefix string) (string, bool) {
	_, rest, ok := strings.Cut(text, prefix)
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, "'")
	return name, ok
}

func fieldNames(kind Kind) []string {
	names := taskFields()
	if kind.isInFinally() {
		names = append(names, runFieldNames()...)
	}
	switch kind.base() {
	case Notify, Message:
		return runFieldNames()
	case Retry:
		names = []string{"exitCode", "stdout", "stderr", "stdoutTruncated", "stderrTruncated", "state", "reason", "number"}
	default:
		names = append(names, "size", "files", "digest")
	}
	return append(names, "name", "runId", "context", "input")
}

// runFieldNames returns the fields of the variable run.
func runFieldNames() []string {
	return []string{"id", "name", "state", "reason", "error", "failed", "generation", "trigger", "submittedBy", "batch", "input"}
}
