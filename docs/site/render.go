package site

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"

	"switchyard/drawing/svg"
)

const (
	// indexPage is the page whose links are the navigation, and stylePath the path of the style sheet.
	indexPage = "index.md"
	stylePath = "style.css"
)

//go:embed style.css
var style string

//go:embed page.html
var frame string

var frameTemplate = template.Must(template.New("page").Parse(frame))

// view is the data of the template.
type view struct {
	Title, Style, Index string
	Content             template.HTML
	Nav                 []group
	Previous, Next      *entry
}

// group is a part of the navigation, below a heading.
type group struct {
	Title   string
	Entries []entry
}

// entry is a link of the navigation.
type entry struct {
	Title, Href string
	Current     bool
	// Headings are those of level 2 of the current page.
	Headings []Heading

	path string
}

// Read returns the pages of a tree of files by their paths, and the bytes of its pictures by theirs.
func Read(files fs.FS) (pages map[string]*Page, pictures map[string][]byte, err error) {
	pages, pictures = map[string]*Page{}, map[string][]byte{}
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		switch path.Ext(name) {
		case ".md":
			pages[name] = Parse(name, data)
		case ".png", ".svg":
			pictures[name] = data
		}
		return err
	})
	return pages, pictures, err
}

// Render returns the files of the site by their paths: a page of HTML for each page of Markdown, its pictures and the style
// sheet.
func Render(files fs.FS) (map[string][]byte, error) {
	pages, site, err := Read(files)
	if err != nil {
		return nil, err
	}
	site[stylePath] = []byte(svg.Colours + style)
	if pages[indexPage] == nil {
		return nil, fmt.Errorf("there is no %s", indexPage)
	}
	for name, p := range pages {
		p.linkToSite(pages, site)
		var content, html bytes.Buffer
		if err := markdown.Renderer().Render(&content, p.source, p.tree); err != nil {
			return nil, fmt.Errorf("render %s: %w", name, err)
		}
		v := newView(pages, p)
		v.Content = template.HTML(content.String())
		if err := frameTemplate.Execute(&html, v); err != nil {
			return nil, fmt.Errorf("render %s: %w", name, err)
		}
		site[htmlPath(name)] = html.Bytes()
	}
	return site, nil
}

// htmlPath returns the path of a page on the site.
func htmlPath(page string) string { return strings.TrimSuffix(page, ".md") + ".html" }

// newView returns the data of the page around the content of a page.
func newView(pages map[string]*Page, p *Page) view {
	up := strings.Repeat("../", strings.Count(p.Path, "/"))
	v := view{Title: p.Title, Style: up + stylePath, Index: up + htmlPath(indexPage)}
	var order []entry
	for _, l := range pages[indexPage].Links {
		file, fragment := l.File(indexPage)
		target := pages[file]
		if target == nil || fragment != "" || slices.ContainsFunc(order, func(e entry) bool { return e.path == file }) {
			continue
		}
		// A page below another one, such as examples/diamond.md below examples.md, is at the place of that one.
		e := entry{Title: target.Title, Href: up + htmlPath(file), path: file, Current: file == p.Path || path.Dir(p.Path)+".md" == file}
		if file == p.Path {
			for _, h := range p.Headings {
				if h.Level == 2 {
					e.Headings = append(e.Headings, h)
				}
			}
		}
		if len(v.Nav) == 0 || v.Nav[len(v.Nav)-1].Title != l.Section {
			v.Nav = append(v.Nav, group{Title: l.Section})
		}
		last := &v.Nav[len(v.Nav)-1]
		last.Entries, order = append(last.Entries, e), append(order, e)
	}
	at := slices.IndexFunc(order, func(e entry) bool { return e.path == p.Path })
	if at > 0 {
		v.Previous = &order[at-1]
	}
	if (at >= 0 || p.Path == indexPage) && at+1 < len(order) {
		v.Next = &order[at+1]
	}
	return v
}

// linkToSite points the links of a page to the files of the site. A link to another file of the repository becomes text.
func (p *Page) linkToSite(pages map[string]*Page, pictures map[string][]byte) {
	var links []*ast.Link
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if l, ok := n.(*ast.Link); ok && entering {
			links = append(links, l)
		}
		return ast.WalkContinue, nil
	})
	for _, l := range links {
		file, _ := Link{Target: string(l.Destination)}.File(p.Path)
		switch target, fragment, ok := strings.Cut(string(l.Destination), "#"); {
		case file == "", target == "", pictures[file] != nil:
		case pages[file] != nil:
			if target = htmlPath(target); ok {
				target += "#" + fragment
			}
			l.Destination = []byte(target)
		default:
			for child := l.FirstChild(); child != nil; child = l.FirstChild() {
				l.Parent().InsertBefore(l.Parent(), l, child)
			}
			l.Parent().RemoveChild(l.Parent(), l)
		}
	}
}
