package web

import (
	"bytes"
	"compress/gzip"
	"html/template"
	"net/http"
	"strings"

	"switchyard/gateway/auth"
	"switchyard/gateway/web/login"
)

// minCompressed is the size from which pages are compressed, in bytes.
const minCompressed = 2 << 10

// frame is the data of the page around a view.
type frame struct {
	Title string
	// View is the address of the view and Version the version of its content. Both are "" for a static page.
	View, Version string
	// Shape is the shape of the content.
	Shape   string
	Content string

	// Notice is shown once. Caller is the viewer. Locked is set if authentication is on.
	Notice   string
	Caller   *auth.Principal
	Locked   bool
	FormMark string
	// Build is the build ID of the program, by which the script detects a page from an older gateway.
	Build string
	Nav   []navItem
}

// HTML returns the content, which a template has already escaped.
func (f frame) HTML() template.HTML { return template.HTML(f.Content) }

// navItem is a navigation link.
type navItem struct {
	URL, Text string
	Current   bool
}

// navigation lists the links at the top of each page.
var navigation = []navItem{
	{"/", "Overview", false},
	{"/ui/runs", "Runs", false},
	{"/ui/queue", "Queue", false},
	{"/ui/nodes", "Nodes", false},
	{"/ui/workflows", "Workflows", false},
	{"/ui/schedules", "Schedules", false},
	{"/ui/approvals", "Approvals", false},
	{"/ui/dead-letters", "Dead letters", false},
	{docsPath, "Docs", false},
}

// writePage writes a whole page.
func (w *Web) writePage(rw http.ResponseWriter, r *http.Request, status int, f frame) {
	f.Notice, f.Caller, f.Locked, f.FormMark, f.Build = login.TakeNotice(rw, r), auth.From(r.Context()), w.isLocked(), w.formMark, build
	for _, item := range navigation {
		item.Current = item.URL == r.URL.Path || item.URL != "/" && strings.HasPrefix(r.URL.Path, item.URL+"/")
		f.Nav = append(f.Nav, item)
	}
	var html bytes.Buffer
	if err := w.pages.templates.ExecuteTemplate(&html, "frame", f); err != nil {
		w.Log.Error("cannot render a page", "path", r.URL.Path, "error", err)
		http.Error(rw, "the page could not be rendered; see the gateway log", http.StatusInternalServerError)
		return
	}
	secret := login.FormSecret(rw, r)
	text := bytes.ReplaceAll(html.Bytes(), []byte(w.formMark), []byte(login.Proof(secret)))
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	rw.Header().Add("Vary", "Accept-Encoding")
	if len(text) < minCompressed || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		rw.WriteHeader(status)
		_, _ = rw.Write(text)
		return
	}
	rw.Header().Set("Content-Encoding", "gzip")
	rw.WriteHeader(status)
	packer, _ := gzip.NewWriterLevel(rw, gzip.BestSpeed) // the level is valid
	_, _ = packer.Write(text)
	_ = packer.Close()
}
