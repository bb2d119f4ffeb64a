package web

import (
	"net/http"
	"net/url"
	"strings"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
)

// errorPage is the data of an error page.
type errorPage struct {
	Status  int
	Heading string
	Message string
}

// handleUnauthenticated answers an unauthenticated request. Page requests are redirected to the login.
func (w *Web) handleUnauthenticated(rw http.ResponseWriter, r *http.Request, err error) {
	if connect.CodeOf(err) == connect.CodeUnauthenticated && r.Method == http.MethodGet && r.URL.Path != "/ui/live" {
		http.Redirect(rw, r, "/ui/login?"+url.Values{"next": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
		return
	}
	w.writeError(rw, r, err)
}

// writeError answers with an error: JSON for the script, a page for people.
func (w *Web) writeError(rw http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && rpcerror.CodeOf(err) != connect.CodeUnauthenticated {
		return // the client has left
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
		http.StatusTooManyRequests: "Too many requests",
	}
	heading := headings[status]
	if heading == "" {
		heading = "Something went wrong"
	}
	page := &Page{Data: errorPage{status, heading, messageOf(err)}, templates: w.pages.templates, FormMark: w.formMark}
	html, renderErr := page.execute("error", page)
	if renderErr != nil {
		w.Log.Error("cannot render an error page", "error", renderErr)
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

// wantsJSON reports whether the script of a page sent the request.
func wantsJSON(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "application/json")
}

// serveNothing answers requests for unknown pages.
func (w *Web) serveNothing(rw http.ResponseWriter, r *http.Request) {
	w.writeError(rw, r, rpcerror.NotFound("there is no page %s", r.URL.Path))
}
