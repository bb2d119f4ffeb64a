package web

import (
	"context"
	"net/http"
	"net/url"

	"switchyard/gateway/rpcerror"
)

// router finds views by their addresses. It is safe for concurrent use.
type router struct{ mux *http.ServeMux }

// foundKey is the key in a context of the view that is found.
type foundKey struct{}

// found is a view under an address.
type found struct {
	view    view
	request request
	err     error
}

func newRouter() router {
	r := router{http.NewServeMux()}
	for _, v := range views {
		r.mux.HandleFunc("GET "+v.pattern, func(_ http.ResponseWriter, r *http.Request) {
			f := r.Context().Value(foundKey{}).(*found)
			f.view = v
			f.request, f.err = v.requestOf(r)
		})
	}
	return r
}

// find returns the view under an address, for the caller of a request.
func (r router) find(from *http.Request, at *url.URL) (view, request, error) {
	f := &found{err: rpcerror.NotFound("there is no page %s", at.Path)}
	look := from.Clone(context.WithValue(from.Context(), foundKey{}, f))
	look.Method, look.URL, look.RequestURI = http.MethodGet, at, at.RequestURI()
	r.mux.ServeHTTP(noAnswer{}, look)
	return f.view, f.request, f.err
}

// noAnswer drops an answer.
type noAnswer struct{}

// Header returns a header that is not sent.
func (noAnswer) Header() http.Header { return http.Header{} }

// WriteHeader does nothing.
func (noAnswer) WriteHeader(int) {}

// Write drops p.
func (noAnswer) Write(p []byte) (int, error) { return len(p), nil }
