package rest

import (
	"bytes"
	"net/http"

	"switchyard/gateway/rpcerror"
)

// answer wraps the writer of a response. It gives errors the common JSON body, and sets the status 201 if the response
// has a Location.
type answer struct {
	http.ResponseWriter
	status int
	failed bytes.Buffer // body of an error
}

// Unwrap returns the wrapped writer for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush sends buffered data.
func (a *answer) Flush() {
	if a.status < http.StatusBadRequest {
		_ = http.NewResponseController(a.ResponseWriter).Flush()
	}
}

// WriteHeader writes the status. It delays the status of an error until finish.
func (a *answer) WriteHeader(status int) {
	if a.status != 0 {
		return
	}
	if status == http.StatusOK && a.Header().Get("Location") != "" {
		status = http.StatusCreated
	}
	for _, name := range []string{"Accept-Encoding", "Trailer"} { // headers that belong to the internal call
		a.Header().Del(name)
	}
	if a.status = status; status < http.StatusBadRequest {
		a.ResponseWriter.WriteHeader(status)
	}
}

// Write writes the body. It buffers the body of an error until finish.
func (a *answer) Write(p []byte) (int, error) {
	if a.WriteHeader(http.StatusOK); a.status >= http.StatusBadRequest {
		return a.failed.Write(p)
	}
	return a.ResponseWriter.Write(p)
}

// finish writes the body of an error.
func (a *answer) finish() {
	if a.status < http.StatusBadRequest {
		return
	}
	a.Header().Del("Content-Encoding")
	rpcerror.BodyOf(a.status, a.failed.Bytes()).Write(a.ResponseWriter, a.status)
}
