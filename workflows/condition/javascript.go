package condition

import (
	"fmt"
	"strings"
)

// refusal returns why the token at index i is JavaScript that CEL does not have, with the CEL spelling if there is one. An
// empty message means that nothing is wrong. In kinds with shorthands, process.files may refer to a task.
func refusal(tokens []token, i int, kind Kind) (message, hint string) {
	t := tokens[i]
	switch {
	case t.kind == tokenOther:
		if hint = operatorHint(t.text); hint != "" {
			return fmt.Sprintf("CEL has no %s", t.text), hint
		}
	case t.kind == tokenName && strings.HasPrefix(t.text, "$"):
		return "an expression is written without ${{ }}", withoutTemplates(tokens)
	case t.kind == tokenName && isMethod(tokens, i):
		if hint = methodHint(t.text); hint != "" {
			return fmt.Sprintf("CEL has no .%s()", t.text), hint
		}
	case t.kind == tokenName && !isMember(tokens, i) && isCalled(tokens, i) && callHint(t.text) != "":
		return fmt.Sprintf("CEL has no %s()", t.text), callHint(t.text)
	case t.kind == tokenName && !isMember(tokens, i) && !(kind.shortens() && isSelected(tokens, i)):
		if hint = wordHint(t.text); hint != "" {
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

func operatorHint(operator string) string {
	switch operator {
	case "=":
		return "to compare: =="
	case "=>":
		return "CEL: list.exists(x, x == 1), list.all(x, x > 0), list.map(x, x + 1), list.filter(x, x > 0)"
	case "?.":
		return "CEL: has(a.b) && a.b.c == 1"
	case "??":
		return "CEL: has(a.b) ? a.b : other"
	case "**":
		return "CEL has only + - * / %"
	case "++":
		return "expressions cannot assign"
	case "&":
		return "CEL: &&"
	case "|":
		return "CEL: ||"
	case "^", "~":
		return "CEL: math.bitXor(a, b), math.bitNot(a)"
	case ";":
		return "it must be one expression"
	case "`":
		return "CEL: 'text ' + string(x)"
	case "/*":
		return "a comment begins with // and ends with its line"
	case "#":
		return "a comment begins with //"
	}
	return ""
}

func methodHint(method string) string {
	switch method {
	case "toLowerCase", "toLocaleLowerCase", "toLower", "lower":
		return "CEL: x.lowerAscii()"
	case "toUpperCase", "toLocaleUpperCase", "toUpper", "upper":
		return "CEL: x.upperAscii()"
	case "match", "search", "test", "exec":
		return "CEL: x.matches('pattern')"
	case "some", "find", "findIndex":
		return "CEL: list.exists(x, x == 1)"
	case "every":
		return "CEL: list.all(x, x > 0)"
	case "slice", "substr":
		return "CEL: x.substring(start, end)"
	case "concat", "push":
		return "CEL: a + b"
	case "toString":
		return "CEL: string(x)"
	case "hasOwnProperty":
		return "CEL: has(x.key), or 'key' in x"
	case "replaceAll":
		return "CEL: x.replace('old', 'new')"
	case "startswith", "hasPrefix":
		return "CEL: x.startsWith('text')"
	case "endswith", "hasSuffix":
		return "CEL: x.endsWith('text')"
	case "trimStart", "trimEnd", "trimLeft", "trimRight":
		return "CEL: x.trim()"
	case "length":
		return "CEL: size(x)"
	case "splitlines", "splitLines":
		return "CEL: lines(x)"
	case "at":
		return "CEL: x[0]"
	case "reduce", "forEach", "call", "apply", "bind", "constructor":
		return "an expression only reads; CEL has exists, all, map and filter"
	}
	return ""
}

// callHint returns a hint for a function of another system, or "".
func callHint(name string) string {
	switch name {
	case "success", "succeeded":
		return "without a condition a task starts when its parents have succeeded, as `when: all_success` does"
	case "always":
		return "write `when: always` in place of the condition"
	case "failure", "failed":
		return "write `when: one_failed` in place of the condition"
	case "cancelled", "canceled":
		return "compare a state: parent.build.state == 'cancelled'"
	case "len", "length", "count":
		return "CEL: size(x)"
	case "str":
		return "CEL: string(x)"
	case "float", "number":
		return "CEL: double(x)"
	case "min", "max":
		return "CEL: math.least(a, b), math.greatest(a, b)"
	case "fromJSON", "fromJson", "fromjson", "parseJSON", "parseJson":
		return "CEL: json(x); output, context and input are values already: parent.build.output.key"
	case "toJSON", "toJson", "tojson":
		return "output, context and input are values already: parent.build.output.key"
	case "hashFiles":
		return "an expression reads no files; a task can write a hash to its output: parent.hash.output.key"
	}
	return ""
}

func wordHint(word string) string {
	switch word {
	case "and":
		return "CEL: &&"
	case "or":
		return "CEL: ||"
	case "not":
		return "CEL: !"
	case "True", "yes":
		return "CEL: true"
	case "False", "no":
		return "CEL: false"
	case "None", "nil":
		return "CEL: null"
	case "undefined", "NaN":
		return "CEL: has(x.key) is true if the key is there"
	case "typeof", "instanceof":
		return "CEL: type(x) == string"
	case "Number", "parseFloat":
		return "CEL: double(x)"
	case "parseInt":
		return "CEL: int(x)"
	case "String":
		return "CEL: string(x)"
	case "Boolean":
		return "compare, for instance x != ''"
	case "Math":
		return "CEL: math.least(a, b), math.greatest(a, b), math.abs(x), math.round(x)"
	case "Date":
		return "CEL: timestamp('2006-01-02T15:04:05Z')"
	case "JSON":
		return "CEL: json(x) reads a text; output, context and input are values already: parent.build.output.key"
	case "Array", "Object", "RegExp":
		return "output, context and input are values already: parent.build.output.key"
	case "inputs":
		return "the input of the run is " + workflowVariable + "." + inputVariable
	case "process", "require", "global", "globalThis", "window", "module", "console", "this", "eval", "Function",
		"setTimeout", "fetch":
		return "an expression sees only the run: parent, workflow and the like"
	case "function", "async", "await", "new", "delete", "throw", "while", "for", "return", "let", "const", "var", "if",
		"import", "do", "try", "switch":
		return "it must be one expression"
	}
	return ""
}
