package condition

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	tokenSpace  tokenKind = iota // white space and comments
	tokenName                    // an identifier or a word of the language
	tokenNumber                  // a number
	tokenString                  // a string or bytes literal, with its prefix and quotes
	tokenRegex                   // /body/flags of JavaScript
	tokenOther                   // an operator or a bracket
)

// token is a piece of an expression. Joined together, all tokens of an expression are the expression.
type token struct {
	kind  tokenKind
	text  string
	start int // byte offset in the expression
}

func (t token) is(text string) bool { return t.kind == tokenOther && t.text == text }

// tokenize splits an expression.
func tokenize(expr string) []token { return slices.Collect(tokensOf(expr)) }

// tokensOf splits an expression. It is lenient: any character that begins no token of CEL or JavaScript becomes a token by
// itself, and an unfinished string extends to the end of its line, so that CEL reports the error.
func tokensOf(expr string) iter.Seq[token] {
	return func(yield func(token) bool) {
		last := token{}
		for at := 0; at < len(expr); {
			kind, size := next(expr[at:], endsValue(last))
			t := token{kind: kind, text: expr[at : at+size], start: at}
			if !yield(t) {
				return
			}
			if kind != tokenSpace {
				last = t
			}
			at += size
		}
	}
}

// endsValue reports whether a slash after the token is a division rather than the start of a regular expression.
func endsValue(t token) bool {
	switch t.kind {
	case tokenName:
		return t.text != "in" && t.text != "typeof"
	case tokenNumber, tokenString, tokenRegex:
		return true
	case tokenOther:
		return t.text == ")" || t.text == "]" || t.text == "}"
	}
	return false
}

// longOperators returns the operators of more than one character, longest first.
func longOperators() []string {
	return []string{"===", "!==", "**", "++", "=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "/*"}
}

func next(rest string, afterValue bool) (tokenKind, int) {
	first, size := utf8.DecodeRuneInString(rest)
	switch {
	case unicode.IsSpace(first):
		return tokenSpace, size
	case strings.HasPrefix(rest, "//"):
		return tokenSpace, lineEnd(rest)
	case isNameStart(first):
		if n := stringPrefix(rest); n > 0 {
			raw := strings.ContainsAny(rest[:n], "rR")
			return tokenString, n + stringSize(rest[n:], raw)
		}
		return tokenName, wordSize(rest)
	case first >= '0' && first <= '9':
		return tokenNumber, numberSize(rest)
	case first == '\'' || first == '"':
		return tokenString, stringSize(rest, false)
	case first == '/' && !afterValue && !strings.HasPrefix(rest, "/*"):
		if n := regexSize(rest); n > 0 {
			return tokenRegex, n
		}
	}
	for _, operator := range longOperators() {
		// `c ?.5 : 1` is a conditional with a number, not optional chaining.
		if strings.HasPrefix(rest, operator) && !(operator == "?." && len(rest) > 2 && rest[2] >= '0' && rest[2] <= '9') {
			return tokenOther, len(operator)
		}
	}
	return tokenOther, size
}

func lineEnd(rest string) int {
	if n := strings.IndexByte(rest, '\n'); n >= 0 {
		return n
	}
	return len(rest)
}

func isNameStart(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r)
}

func wordSize(rest string) int {
	n := strings.IndexFunc(rest, func(r rune) bool { return !isNameStart(r) && !unicode.IsDigit(r) })
	if n < 0 {
		return len(rest)
	}
	return n
}

// numberSize includes a decimal point only if a digit follows, so that the dot of `list[0].includes` and `1.size()` is left
// out.
func numberSize(rest string) int {
	n := wordSize(rest)
	if n+1 < len(rest) && rest[n] == '.' && rest[n+1] >= '0' && rest[n+1] <= '9' {
		n += 1 + wordSize(rest[n+1:])
	}
	return n
}

// stringPrefix returns the length of the r, b or rb before a quote, or 0 if no quote follows.
func stringPrefix(rest string) int {
	n := strings.IndexAny(rest[:min(3, len(rest))], `'"`)
	if n < 1 || strings.Trim(rest[:n], "rRbB") != "" {
		return 0
	}
	return n
}

func stringSize(rest string, raw bool) int {
	quote := rest[:1]
	long := strings.HasPrefix(rest, strings.Repeat(quote, 3))
	if long {
		quote = rest[:3]
	}
	for n := len(quote); n < len(rest); n++ {
		switch {
		case strings.HasPrefix(rest[n:], quote):
			return n + len(quote)
		case rest[n] == '\\' && !raw:
			n++
		case rest[n] == '\n' && !long:
			return n
		}
	}
	return len(rest)
}

// regexSize returns the length of a JavaScript regular expression with its flags, or 0 if the slash starts none on this line.
func regexSize(rest string) int {
	class := false
	for n := 1; n < len(rest); n++ {
		switch rest[n] {
		case '\n':
			return 0
		case '\\':
			n++
		case '[':
			class = true
		case ']':
			class = false
		case '/':
			if !class {
				return n + 1 + wordSize(rest[n+1:])
			}
		}
	}
	return 0
}
