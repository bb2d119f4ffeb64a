package edge

import (
	"mime"
	"net/http"

	"switchyard/gateway/rpcerror"
)

// LimitBody returns a handler that refuses unary Connect calls whose body is announced as larger than a number of bytes, with
// the HTTP status 413. Without it, Connect answers 429, which tells HTTP clients to try again. Calls of other protocols and bodies
// of unknown size pass: their handlers have limits of their own.
func LimitBody(maxBytes int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > maxBytes && isUnaryConnect(r) {
			rpcerror.WriteJSON(w, http.StatusRequestEntityTooLarge, rpcerror.TooLarge(maxBytes))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isUnaryConnect reports whether a request has the content type of a unary Connect call.
func isUnaryConnect(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || kind == "application/proto")
}
