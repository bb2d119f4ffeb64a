package web

import (
	"net/http"
	"net/url"
	"strings"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
)

// errorPage is what the page of an error shows.
type errorPage struct {
	Status  int
	Heading string
	Message string
}

// refuse answers a request of a caller that is not known: a page leads to the log-in.
func (w *Web) refuse(rw http.ResponseWriter, r *http.Request, err error) {
	if connect.CodeOf(err) == connect.CodeUnauthenticated && r.Method == http.MethodGet && r.URL.Path != "/ui/live" {
		http.Redirect(rw, r, "/ui/login?"+url.Values{"next": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
		return
	}
	w.writeError(rw, r, err)
}

// writeError answers with an error: as JSON to the script, as a page to people.
func (w *Web) writeError(rw http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && rpcerror.CodeOf(err) != connect.CodeUnauthenticated {
		return // who has asked has gone
	}
	code := rpcerror.CodeOf(err)
	status := rpcerror.HTTPStatus(code)
	if wantsJSON(r) {
		rpcerror.WriteJSON(rw, status, err)
		return
	}
	headings := map[int]string{
		http.StatusNotFound: "Not found", http.StatusForbidden: "Not allowed", http.StatusUnauthorized: "Log in first",
		http.StatusBadRequest: "Not understood", http.StatusConflict: "Not possible now", http.StatusServiceUnavailable: "Not available now",
		http.StatusTooManyRequests: "Too much at once",
	}
	heading := headings[status]
	if heading == "" {
		heading = "Something went wrong"
	}
	page := &Page{Data: errorPage{status, heading, messageOf(err)}, templates: w.pages.templates, FormMark: w.formMark}
	html, renderErr := page.execute("error", page)
	if renderErr != nil {
		w.Log.Error("the page of an error was not rendered", "error", renderErr)
	}
	w.writePage(rw, r, status, frame{Title: heading, Content: string(html)})
}

// messageOf returns the text of an error without its code.
func messageOf(err error) string {
	if e := rpcerror.ToConnect(err); e != nil {
		if c, ok := e.(*connect.Error); ok {
			return c.Message()
		}
		return e.Error()
	}
	return ""
}

// wantsJSON reports whether the script of a page has sent a request.
func wantsJSON(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "application/json")
}

// serveNothing answers requests for pages that do not exist.
func (w *Web) serveNothing(rw http.ResponseWriter, r *http.Request) {
	w.writeError(rw, r, rpcerror.NotFound("there is no page %s", r.URL.Path))
}
