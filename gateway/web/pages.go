package web

import (
	"embed"
	"errors"
	"fmt"
	"html/template"
	"reflect"
	"strings"

	"switchyard/gateway/web/live"
)

//go:embed templates/*.html
var templateFiles embed.FS

// pages renders templates. It is safe for concurrent use.
type pages struct {
	templates *template.Template
	formMark  string
}

func newPages(formMark string) *pages {
	return &pages{template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/*.html")), formMark}
}

// render executes the template of a view and returns the page, with the blocks and lists that a live update may replace.
func (p *pages) render(v viewData, req request) (*live.Content, error) {
	page := &Page{
		Data: v.data, FormMark: p.formMark, URL: req.url(), req: req,
		templates: p.templates, blocks: map[string]string{}, lists: map[string][]string{},
	}
	html, err := page.execute(v.template, page)
	if err != nil {
		return nil, err
	}
	content := &live.Content{HTML: string(html), Title: v.title, Blocks: page.blocks, Lists: page.lists}
	if s, ok := v.data.(shaped); ok {
		content.Shape = s.shape()
	}
	return content, nil
}

// Page is the data of a view template.
type Page struct {
	Data any
	// FormMark is the placeholder for the proof of a form.
	FormMark string
	// URL is the address of the view.
	URL string

	req       request
	templates *template.Template
	blocks    map[string]string
	lists     map[string][]string
}

// Block is the data of a block template.
type Block struct {
	*Page
	ID   string
	Data any
}

// Live renders a block, using a template whose root element has the id of the block.
func (p *Page) Live(id, name string, data any) (template.HTML, error) {
	if p.blocks[id] != "" {
		return "", fmt.Errorf("the page has two blocks %q", id)
	}
	html, err := p.execute(name, Block{p, id, data})
	if err != nil {
		return "", err
	}
	if html == "" {
		return "", fmt.Errorf("the template %s of block %q is empty; a block needs an element", name, id)
	}
	p.blocks[id] = string(html)
	return html, nil
}

// Item is a row of a list of blocks.
type Item interface {
	// LiveID returns the id of the block.
	LiveID() string
}

// Drawn registers an element of a drawing that the template has already written as a block.
func (p *Page) Drawn(id string, html template.HTML) (string, error) {
	if p.blocks[id] != "" {
		return "", fmt.Errorf("the page has two blocks %q", id)
	}
	p.blocks[id] = string(html)
	return "", nil
}

// Rows renders items as blocks that are the children of the element with id list.
func (p *Page) Rows(list, name string, items any) (template.HTML, error) {
	values := reflect.ValueOf(items)
	if values.Kind() != reflect.Slice {
		return "", errors.New("the items of a list of blocks are not a slice")
	}
	ids := make([]string, 0, values.Len())
	var html strings.Builder
	for i := range values.Len() {
		item, ok := values.Index(i).Interface().(Item)
		if !ok {
			return "", fmt.Errorf("%s has no method LiveID", values.Index(i).Type())
		}
		row, err := p.Live(item.LiveID(), name, item)
		if err != nil {
			return "", err
		}
		ids = append(ids, item.LiveID())
		html.WriteString(string(row))
	}
	p.lists[list] = ids
	return template.HTML(html.String()), nil
}

// Action renders the form of an action.
func (p *Page) Action(a Action) (template.HTML, error) { return p.execute("action", Block{p, "", a}) }

// execute renders a template and trims the surrounding white space.
func (p *Page) execute(name string, data any) (template.HTML, error) {
	var html strings.Builder
	if err := p.templates.ExecuteTemplate(&html, name, data); err != nil {
		return "", fmt.Errorf("render %s: %w", name, err)
	}
	return template.HTML(strings.TrimSpace(html.String())), nil
}
