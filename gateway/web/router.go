package web

import (
	"context"
	"net/http"
	"net/url"

	"switchyard/gateway/rpcerror"
)

// router finds views by address. It is safe for concurrent use.
type router struct{ mux *http.ServeMux }

// foundKey is the context key of the look-up result.
type foundKey struct{}

// found is the result of a look-up.
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

// findView returns the view at an address and its request, in the name of the caller of from.
func (r router) findView(from *http.Request, at *url.URL) (view, request, error) {
	f := &found{err: rpcerror.NotFound("there is no page %s", at.Path)}
	look := from.Clone(context.WithValue(from.Context(), foundKey{}, f))
	look.Method, look.URL, look.RequestURI = http.MethodGet, at, at.RequestURI()
	r.mux.ServeHTTP(noAnswer{}, look)
	return f.view, f.request, f.err
}

// noAnswer is a ResponseWriter that discards everything.
type noAnswer struct{}

// Header returns a header that is discarded.
func (noAnswer) Header() http.Header { return http.Header{} }

// WriteHeader discards the status.
func (noAnswer) WriteHeader(int) {}

// Write discards p.
func (noAnswer) Write(p []byte) (int, error) { return len(p), nil }
