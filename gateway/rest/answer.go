package rest

import (
	"bytes"
	"encoding/json"
	"net/http"

	"connectrpc.com/connect"

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
	var said struct {
		Code    uint32
		Message string
		Details []json.RawMessage
	}
	body := rpcerror.Body{Details: []json.RawMessage{}}
	if json.Unmarshal(a.failed.Bytes(), &said) == nil && said.Code != 0 {
		body.Code, body.Message = connect.Code(said.Code).String(), rpcerror.Readable(said.Message)
		body.Details = append(body.Details, said.Details...)
	} else {
		body.Code, body.Message = codeOfStatus(a.status).String(), rpcerror.Readable(a.failed.String())
	}
	a.Header().Del("Content-Encoding")
	body.Write(a.ResponseWriter, a.status)
}

// codeOfStatus returns the error code for a response that has only an HTTP status.
func codeOfStatus(status int) connect.Code {
	switch status {
	case http.StatusNotFound:
		return connect.CodeNotFound
	case http.StatusServiceUnavailable:
		return connect.CodeUnavailable
	}
	if status < http.StatusInternalServerError {
		return connect.CodeInvalidArgument
	}
	return connect.CodeInternal
}
