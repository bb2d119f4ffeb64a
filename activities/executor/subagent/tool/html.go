package tool

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// readableText returns the text of an HTML page, with blocks on separate lines, marked headings and list items, and the
// targets of links. It reads token by token, so that a page cannot make it recurse.
func readableText(page []byte) string {
	t := &textWriter{}
	tokens := html.NewTokenizer(bytes.NewReader(page))
	tokens.SetMaxBuf(maxPage)
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return strings.TrimSpace(t.b.String())
		case html.TextToken:
			t.text(string(tokens.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			token := tokens.Token()
			t.start(token)
		case html.EndTagToken:
			t.end(tokens.Token())
		}
	}
}

// textWriter builds the text of a page.
type textWriter struct {
	b strings.Builder
	// hidden is the element whose content is being skipped, or 0.
	hidden atom.Atom
	pre    int
	href   string
	// space reports whether white space precedes the next word; lines is the number of line breaks that do.
	space bool
	lines int
}

// hiddenElements have no text for readers.
var hiddenElements = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Svg: true, atom.Iframe: true, atom.Canvas: true,
}

// blocks maps elements that begin a new line to the number of line breaks before and after them.
var blocks = map[atom.Atom]int{
	atom.P: 2, atom.Div: 1, atom.Section: 2, atom.Article: 2, atom.Header: 2, atom.Footer: 2, atom.Nav: 2, atom.Aside: 2, atom.Main: 2,
	atom.H1: 2, atom.H2: 2, atom.H3: 2, atom.H4: 2, atom.H5: 2, atom.H6: 2, atom.Ul: 1, atom.Ol: 1, atom.Li: 1, atom.Dl: 1, atom.Dt: 1, atom.Dd: 1,
	atom.Table: 2, atom.Tr: 1, atom.Br: 1, atom.Hr: 2, atom.Pre: 2, atom.Blockquote: 2, atom.Figure: 2, atom.Form: 2, atom.Title: 2, atom.Body: 2,
}

// marks are prefixes for the text of an element.
var marks = map[atom.Atom]string{
	atom.H1: "# ", atom.H2: "## ", atom.H3: "### ", atom.H4: "#### ", atom.H5: "##### ", atom.H6: "###### ", atom.Li: "- ", atom.Td: "| ", atom.Th: "| ",
}

func (t *textWriter) start(token html.Token) {
	if t.hidden != 0 {
		return
	}
	if hiddenElements[token.DataAtom] && token.Type == html.StartTagToken {
		t.hidden = token.DataAtom
		return
	}
	t.lines = max(t.lines, blocks[token.DataAtom])
	switch token.DataAtom {
	case atom.Pre:
		t.pre++
	case atom.A:
		t.href = attribute(token, "href")
	case atom.Img:
		if alt := strings.TrimSpace(attribute(token, "alt")); alt != "" {
			t.text("[" + alt + "]")
		}
	}
	if mark := marks[token.DataAtom]; mark != "" {
		t.text(mark)
		t.space = true
	}
}

func (t *textWriter) end(token html.Token) {
	if t.hidden != 0 {
		if t.hidden == token.DataAtom {
			t.hidden = 0
		}
		return
	}
	switch token.DataAtom {
	case atom.Pre:
		t.pre = max(t.pre-1, 0)
	case atom.A:
		if strings.HasPrefix(t.href, "http:") || strings.HasPrefix(t.href, "https:") || strings.HasPrefix(t.href, "/") {
			t.text(" (" + t.href + ")")
		}
		t.href = ""
	}
	t.lines = max(t.lines, blocks[token.DataAtom])
}

func (t *textWriter) text(s string) {
	if t.hidden != 0 || s == "" {
		return
	}
	if t.pre > 0 {
		t.separate()
		t.b.WriteString(s)
		return
	}
	t.space = t.space || isSpace(s[0])
	for i, word := range strings.Fields(s) {
		t.space = t.space || i > 0
		t.separate()
		t.b.WriteString(word)
	}
	t.space = t.space || isSpace(s[len(s)-1])
}

// separate writes the pending separator before the next text.
func (t *textWriter) separate() {
	switch {
	case t.b.Len() == 0:
	case t.lines > 0:
		t.b.WriteString("\n\n"[:t.lines])
	case t.space:
		t.b.WriteByte(' ')
	}
	t.space, t.lines = false, 0
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

func attribute(token html.Token, name string) string {
	for _, a := range token.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
