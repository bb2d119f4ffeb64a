package condition

import (
	"cmp"
	"fmt"
	"strings"
)

// refusal returns why the token at index i is JavaScript that CEL does not have, with the CEL spelling if there is one. An
// empty message means that nothing is wrong. In kinds with shorthands, process.files may refer to a task.
func refusal(tokens []token, i int, kind Kind) (message, hint string) {
	t := tokens[i]
	switch {
	case t.kind == tokenOther:
		if hint = operatorHints[t.text]; hint != "" {
			return fmt.Sprintf("CEL has no %s", t.text), hint
		}
	case t.kind == tokenName && strings.HasPrefix(t.text, "$"):
		return "an expression is written without ${{ }}", withoutTemplates(tokens)
	case t.kind == tokenName && isMethod(tokens, i):
		if hint = methodHints[t.text]; hint != "" {
			return fmt.Sprintf("CEL has no .%s()", t.text), hint
		}
	case t.kind == tokenName && !isMember(tokens, i) && isCalled(tokens, i) && callHints[t.text] != "":
		own := finallyCallHints
		switch {
		case kind.sees(eventVariable):
			own = notifyCallHints
		case !kind.sees(runVariable):
			own = nil
		}
		return fmt.Sprintf("CEL has no %s()", t.text), cmp.Or(own[t.text], callHints[t.text])
	case t.kind == tokenName && !isMember(tokens, i) && !(kind.shortens() && isSelected(tokens, i)):
		if hint = wordHints[t.text]; hint != "" {
			return fmt.Sprintf("CEL has no %s", t.text), hint
		}
	}
	return "", ""
}

// withoutTemplates returns a hint that shows a text with `${{ }}` as an expression.
func withoutTemplates(tokens []token) string {
	var text strings.Builder
	for _, t := range tokens {
		text.WriteString(t.text)
	}
	t, err := ParseTemplate(text.String())
	if err != nil || len(t.Expressions()) == 0 {
		return "text needs quotes"
	}
	var terms []string
	for _, p := range t.parts {
		switch {
		case !p.isExpr:
			terms = append(terms, quote(p.text))
		case len(t.parts) == 1:
			terms = append(terms, strings.TrimSpace(p.text))
		default:
			terms = append(terms, "string("+strings.TrimSpace(p.text)+")")
		}
	}
	return "write " + strings.Join(terms, " + ")
}

// isSelected reports whether the token is followed by a selection.
func isSelected(tokens []token, i int) bool {
	n := after(tokens, i)
	return n < len(tokens) && (tokens[n].is(".") || tokens[n].is("["))
}

// isCalled reports whether the token is followed by an opening parenthesis.
func isCalled(tokens []token, i int) bool {
	n := after(tokens, i)
	return n < len(tokens) && tokens[n].is("(")
}

// hintsFor returns the hints of a table by word. Each line of the table has words, separated by blanks, and their hint.
func hintsFor(table [][2]string) map[string]string {
	hints := map[string]string{}
	for _, line := range table {
		for word := range strings.FieldsSeq(line[0]) {
			hints[word] = line[1]
		}
	}
	return hints
}

// operatorHints has operators that CEL does not have.
var operatorHints = hintsFor([][2]string{
	{"=", "to compare: =="},
	{"=>", "CEL: list.exists(x, x == 1), list.all(x, x > 0), list.map(x, x + 1), list.filter(x, x > 0)"},
	{"?.", "CEL: has(a.b) && a.b.c == 1"},
	{"??", "CEL: has(a.b) ? a.b : other"},
	{"**", "CEL has only + - * / %"},
	{"++", "expressions cannot assign"},
	{"&", "CEL: &&"},
	{"|", "CEL: ||"},
	{"^ ~", "CEL: math.bitXor(a, b), math.bitNot(a)"},
	{";", "it must be one expression"},
	{"`", "CEL: 'text ' + string(x)"},
	{"/*", "a comment begins with // and ends with its line"},
	{"#", "a comment begins with //"},
})

// methodHints has methods that CEL does not have.
var methodHints = hintsFor([][2]string{
	{"toLowerCase toLocaleLowerCase toLower lower", "CEL: x.lowerAscii()"},
	{"toUpperCase toLocaleUpperCase toUpper upper", "CEL: x.upperAscii()"},
	{"match search test exec", "CEL: x.matches('pattern')"},
	{"some find findIndex", "CEL: list.exists(x, x == 1)"},
	{"every", "CEL: list.all(x, x > 0)"},
	{"slice substr", "CEL: x.substring(start, end)"},
	{"concat push", "CEL: a + b"},
	{"toString", "CEL: string(x)"},
	{"hasOwnProperty", "CEL: has(x.key), or 'key' in x"},
	{"replaceAll", "CEL: x.replace('old', 'new')"},
	{"startswith hasPrefix", "CEL: x.startsWith('text')"},
	{"endswith hasSuffix", "CEL: x.endsWith('text')"},
	{"trimStart trimEnd trimLeft trimRight", "CEL: x.trim()"},
	{"length", "CEL: size(x)"},
	{"splitlines splitLines", "CEL: lines(x)"},
	{"at", "CEL: x[0]"},
	{"reduce forEach call apply bind constructor", "an expression only reads; CEL has exists, all, map and filter"},
})

// callHints has functions of other systems.
var callHints = hintsFor([][2]string{
	{"success succeeded", "without a condition a task starts when its parents have succeeded, as `when: all_success` does"},
	{"always", "write `when: always` in place of the condition"},
	{"failure failed", "write `when: one_failed` in place of the condition"},
	{"cancelled canceled", "compare a state: parent.build.state == 'cancelled'"},
	{"len length count", "CEL: size(x)"},
	{"str", "CEL: string(x)"},
	{"float number", "CEL: double(x)"},
	{"min max", "CEL: math.least(a, b), math.greatest(a, b)"},
	{"fromJSON fromJson fromjson parseJSON parseJson", "CEL: json(x); output, context and input are values already: parent.build.output.key"},
	{"toJSON toJson tojson", "output, context and input are values already: parent.build.output.key"},
	{"hashFiles", "an expression reads no files; a task can write a hash to its output: parent.hash.output.key"},
})

// finallyCallHints has those functions of other systems that a task in `finally` replaces in another way.
var finallyCallHints = hintsFor([][2]string{
	{"success succeeded", "compare the state of the run: run.state == 'completed'"},
	{"always", "leave it out: tasks in finally run however the tasks end"},
	{"failure failed", "compare the state of the run: run.state == 'failed'"},
	{"cancelled canceled", "compare the state of the run: run.state == 'cancelled'"},
})

// notifyCallHints has those functions of other systems that a notification replaces in another way.
var notifyCallHints = hintsFor([][2]string{
	{"success succeeded", "write on: [completed], or compare event == 'completed'"},
	{"always", "leave it out, and write on: [completed, failed, cancelled]"},
	{"failure failed", "write on: [failed], or compare event == 'failed'"},
	{"cancelled canceled", "write on: [cancelled], or compare event == 'cancelled'"},
})

// wordHints has words that mean nothing in CEL, or something else.
var wordHints = hintsFor([][2]string{
	{"and", "CEL: &&"},
	{"or", "CEL: ||"},
	{"not", "CEL: !"},
	{"True yes", "CEL: true"},
	{"False no", "CEL: false"},
	{"None nil", "CEL: null"},
	{"undefined NaN", "CEL: has(x.key) is true if the key is there"},
	{"typeof instanceof", "CEL: type(x) == string"},
	{"Number parseFloat", "CEL: double(x)"},
	{"parseInt", "CEL: int(x)"},
	{"String", "CEL: string(x)"},
	{"Boolean", "compare, for instance x != ''"},
	{"Math", "CEL: math.least(a, b), math.greatest(a, b), math.abs(x), math.round(x)"},
	{"Date", "CEL: timestamp('2006-01-02T15:04:05Z')"},
	{"JSON", "CEL: json(x) reads a text; output, context and input are values already: parent.build.output.key"},
	{"Array Object RegExp", "output, context and input are values already: parent.build.output.key"},
	{"inputs", "the input of the run is " + workflowVariable + "." + inputVariable},
	{"process require global globalThis window module console this eval Function setTimeout fetch", "an expression sees only the run: parent, workflow and the like"},
	{"function async await new delete throw while for return let const var if import do try switch", "it must be one expression"},
})
