package site

import (
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown reads pages in the syntax of GitHub. Pages may hold HTML, such as anchors in tables.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(fenceRenderer{}, 100))),
)

// Page is a page of Markdown.
type Page struct {
	// Path is the path of the page, such as operations/tls.md.
	Path string
	// Title is the first heading, or the path if the page has no heading.
	Title    string
	Headings []Heading
	Links    []Link
	Fences   []Fence
	// Codes holds the texts of the pieces of code within lines.
	Codes []string
	// Anchors holds the fragments that lead into the page: those of headings, and those of HTML elements.
	Anchors map[string]bool

	source []byte
	tree   ast.Node
}

// Heading is a heading of a page.
type Heading struct {
	Level    int
	ID, Text string
}

// Link is a link or a picture. Its target is as written.
type Link struct {
	Target, Text string
	Picture      bool
	// Section is the text of the last heading of level 2 before the link, or "".
	Section string
}

// File returns the path that a link on a page leads to and the fragment after it. The path is "" if the link leads out of the tree
// that the page is in.
func (l Link) File(page string) (file, fragment string) {
	if regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`).MatchString(l.Target) {
		return "", ""
	}
	target, fragment, _ := strings.Cut(l.Target, "#")
	if target == "" {
		return page, fragment
	}
	return path.Join(path.Dir(page), target), fragment
}

// Fence is a block of code.
type Fence struct {
	// Language is the first word of the line that opens the fence. Info is the rest of that line.
	Language, Info string
	Text           string
	// Line is the number of the first line of the text.
	Line int
}

// File returns the name of the file that the fence shows, or "" if it shows none.
func (f Fence) File() string { return fileName.FindString(f.Info) }

// fileName matches the info of a fence that shows a file.
var fileName = regexp.MustCompile(`^[\w/-]+(\.[\w-]+)+$`)

// htmlID matches the ID of an HTML element.
var htmlID = regexp.MustCompile(`\bid="([^"]+)"`)

// Parse reads a page.
func Parse(path string, source []byte) *Page {
	ids := anchors{}
	p := &Page{Path: path, source: source, Anchors: ids}
	p.tree = markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(ids))))
	section := ""
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			h := Heading{n.Level, attribute(n, "id"), textOf(n, source)}
			p.Headings = append(p.Headings, h)
			if p.Title == "" {
				p.Title = h.Text
			}
			if n.Level == 2 {
				section = h.Text
			}
		case *ast.Link:
			p.Links = append(p.Links, Link{Target: string(n.Destination), Text: textOf(n, source), Section: section})
		case *ast.Image:
			p.Links = append(p.Links, Link{Target: string(n.Destination), Text: textOf(n, source), Picture: true, Section: section})
		case *ast.FencedCodeBlock:
			p.Fences = append(p.Fences, newFence(n, source))
		case *ast.CodeSpan:
			p.Codes = append(p.Codes, textOf(n, source))
		case *ast.RawHTML:
			ids.add(string(n.Segments.Value(source)))
		case *ast.HTMLBlock:
			ids.add(string(n.Lines().Value(source)))
		}
		return ast.WalkContinue, nil
	})
	if p.Title == "" {
		p.Title = path
	}
	return p
}

func newFence(n *ast.FencedCodeBlock, source []byte) Fence {
	f := Fence{Text: string(n.Lines().Value(source))}
	if n.Info != nil {
		f.Language, f.Info, _ = strings.Cut(string(n.Info.Value(source)), " ")
	}
	if n.Lines().Len() > 0 {
		f.Line = 1 + strings.Count(string(source[:n.Lines().At(0).Start]), "\n")
	}
	return f
}

// attribute returns an attribute of a node, or "" if the node lacks it.
func attribute(n ast.Node, name string) string {
	value, _ := n.AttributeString(name)
	text, _ := value.([]byte)
	return string(text)
}

// textOf returns the text inside a node, without markup.
func textOf(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Value(source))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}
