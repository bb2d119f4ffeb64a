package condition

import (
	"strings"
	"unicode/utf8"
)

// source is an expression as written together with its CEL form, and maps positions in the CEL back to the original.
type source struct {
	written string
	cel     string
	origin  []int // byte offset in written, for each byte of cel
}

// offsetOf converts a position in the CEL as CEL counts it (lines from 1, columns from 0 in characters) to a byte offset in the
// expression as written.
func (s *source) offsetOf(line, column int) int {
	at := 0
	for ; line > 1; line-- {
		n := strings.IndexByte(s.cel[at:], '\n')
		if n < 0 {
			return len(s.written)
		}
		at += n + 1
	}
	for ; column > 0 && at < len(s.cel); column-- {
		_, size := utf8.DecodeRuneInString(s.cel[at:])
		at += size
	}
	if at >= len(s.cel) {
		return len(s.written)
	}
	return s.origin[at]
}

// rewriter converts tokens to CEL.
type rewriter struct {
	source
	tokens []token
	out    strings.Builder
	open   []bracket
}

// bracket is an open bracket. If it opens the call of a regular expression's test, pattern is the pattern to match once the
// bracket closes.
type bracket struct {
	text    string
	pattern string
	start   int
}

// rewrite replaces JavaScript spellings that have exactly one meaning in CEL (===, !==, .includes( and /re/.test(x)), but never
// inside literals and comments. It refuses other JavaScript and names the CEL spelling if there is one.
func rewrite(expr string, kind Kind) (*source, *Error) {
	w := &rewriter{source: source{written: expr}, tokens: tokenize(expr)}
	for i := 0; i < len(w.tokens); i++ {
		t := w.tokens[i]
		if message, hint := refusal(w.tokens, i, kind); message != "" {
			return nil, errorAt(expr, t.start, hint, "%s", message)
		}
		switch {
		case t.is("==="):
			w.emit("==", t.start)
		case t.is("!=="):
			w.emit("!=", t.start)
		case t.kind == tokenName && t.text == "includes" && isMethod(w.tokens, i):
			w.emit("contains", t.start)
		case t.kind == tokenRegex:
			opening, pattern, err := w.test(i)
			if err != nil {
				return nil, err
			}
			w.emit("(", t.start)
			w.open = append(w.open, bracket{text: "(", pattern: pattern, start: t.start})
			i = opening
		case t.is("("), t.is("["), t.is("{"):
			w.open = append(w.open, bracket{text: t.text})
			w.copy(t)
		case t.is(")"), t.is("]"), t.is("}"):
			w.copy(t)
			w.closeBracket()
		default:
			w.copy(t)
		}
	}
	w.cel = w.out.String()
	return &w.source, nil
}

// emit writes CEL text whose bytes all map to one position in the expression.
func (w *rewriter) emit(cel string, start int) {
	w.out.WriteString(cel)
	for range len(cel) {
		w.origin = append(w.origin, start)
	}
}

func (w *rewriter) copy(t token) {
	w.out.WriteString(t.text)
	for i := range len(t.text) {
		w.origin = append(w.origin, t.start+i)
	}
}

func (w *rewriter) closeBracket() {
	if len(w.open) == 0 {
		return
	}
	last := w.open[len(w.open)-1]
	w.open = w.open[:len(w.open)-1]
	if last.pattern != "" {
		w.emit(".matches("+last.pattern+")", last.start)
	}
}

// test reads `.test(` after the regular expression at index i. It returns the index of the opening parenthesis and the pattern
// as a CEL string.
func (w *rewriter) test(i int) (opening int, pattern string, err *Error) {
	t := w.tokens[i]
	body := t.text[1:strings.LastIndexByte(t.text, '/')]
	flags := t.text[len(body)+2:]
	hint := "CEL: x.matches(" + quote(body) + ")"
	point := after(w.tokens, i)
	method := after(w.tokens, point)
	opening = after(w.tokens, method)
	if opening >= len(w.tokens) || !w.tokens[point].is(".") || w.tokens[method].text != "test" || !w.tokens[opening].is("(") {
		return 0, "", errorAt(w.written, t.start, hint, "a regular expression is only understood as /re/.test(x)")
	}
	kept := ""
	for _, flag := range flags {
		switch {
		case flag == 'g': // it sets where to continue searching, but test searches once
		case strings.ContainsRune("ims", flag):
			kept += string(flag)
		default:
			return 0, "", errorAt(w.written, t.start, hint, "regular expressions have no flag %q here, only g, i, m and s", flag)
		}
	}
	if kept != "" {
		body = "(?" + kept + ")" + body
	}
	return opening, quote(body), nil
}

// quote returns text on one line as a CEL string literal.
func quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\r", `\r`).Replace(text) + "'"
}

// after returns the index of the next token that is not space, or len(tokens) if there is none.
func after(tokens []token, i int) int {
	for i = min(i+1, len(tokens)); i < len(tokens) && tokens[i].kind == tokenSpace; i++ {
	}
	return i
}

// before returns the index of the previous token that is not space, or -1 if there is none.
func before(tokens []token, i int) int {
	for i--; i >= 0 && tokens[i].kind == tokenSpace; i-- {
	}
	return i
}

// isMember reports whether a dot precedes the token.
func isMember(tokens []token, i int) bool {
	p := before(tokens, i)
	return p >= 0 && (tokens[p].is(".") || tokens[p].is("?."))
}

// isMethod reports whether the token is a member that is called.
func isMethod(tokens []token, i int) bool {
	n := after(tokens, i)
	return isMember(tokens, i) && n < len(tokens) && tokens[n].is("(")
}
