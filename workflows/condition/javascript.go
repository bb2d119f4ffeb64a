package condition

import "fmt"

// refusal says why the token at index i is JavaScript that CEL does not have,
// with the CEL spelling where there is one. An empty message: nothing is wrong.
// Where tasks have a shorthand, process.files may be about a task.
func refusal(tokens []token, i int, kind Kind) (message, hint string) {
	t := tokens[i]
	switch {
	case t.kind == tokenOther:
		if hint = operatorHint(t.text); hint != "" {
			return fmt.Sprintf("CEL has no %s", t.text), hint
		}
	case t.kind == tokenName && isMethod(tokens, i):
		if hint = methodHint(t.text); hint != "" {
			return fmt.Sprintf("CEL has no .%s()", t.text), hint
		}
	case t.kind == tokenName && !isMember(tokens, i) && !(kind.shortens() && isSelected(tokens, i)):
		if hint = wordHint(t.text); hint != "" {
			return fmt.Sprintf("CEL has no %s", t.text), hint
		}
	}
	return "", ""
}

// isSelected tells whether something is selected of the token.
func isSelected(tokens []token, i int) bool {
	n := after(tokens, i)
	return n < len(tokens) && (tokens[n].is(".") || tokens[n].is("["))
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
		return "an expression changes nothing"
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
	case "toLowerCase", "toLocaleLowerCase":
		return "CEL: x.lowerAscii()"
	case "toUpperCase", "toLocaleUpperCase":
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
	case "trimStart", "trimEnd", "trimLeft", "trimRight":
		return "CEL: x.trim()"
	case "length":
		return "CEL: size(x)"
	case "at":
		return "CEL: x[0]"
	case "reduce", "forEach", "call", "apply", "bind", "constructor":
		return "an expression only reads; CEL has exists, all, map and filter"
	}
	return ""
}

func wordHint(word string) string {
	switch word {
	case "undefined", "NaN":
		return "CEL: has(x.key) tells whether a key is there"
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
	case "Array", "Object", "JSON", "RegExp":
		return "output, context and input are values already: parent.build.output.key"
	case "inputs":
		return "what the run was given is " + workflowVariable + "." + inputVariable
	case "process", "require", "global", "globalThis", "window", "module", "console", "this", "eval", "Function",
		"setTimeout", "fetch":
		return "an expression sees only the run: parent, workflow and the like"
	case "function", "async", "await", "new", "delete", "throw", "while", "for", "return", "let", "const", "var", "if",
		"import", "do", "try", "switch":
		return "it must be one expression"
	}
	return ""
}
