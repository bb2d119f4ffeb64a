package rest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
)

// answer is the writer of an answer. It gives errors the body that all layers have, and what creates a thing, which names
// where that is, the status 201.
type answer struct {
	http.ResponseWriter
	status int
	failed bytes.Buffer // the body of an error
}

// Unwrap returns the writer below, for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush sends what has been written.
func (a *answer) Flush() {
	if a.status < http.StatusBadRequest {
		_ = http.NewResponseController(a.ResponseWriter).Flush()
	}
}

// WriteHeader writes the status, unless it is that of an error.
func (a *answer) WriteHeader(status int) {
	if a.status != 0 {
		return
	}
	if status == http.StatusOK && a.Header().Get("Location") != "" {
		status = http.StatusCreated
	}
	for _, name := range []string{"Accept-Encoding", "Trailer"} { // of the call
		a.Header().Del(name)
	}
	if a.status = status; status < http.StatusBadRequest {
		a.ResponseWriter.WriteHeader(status)
	}
}

// Write writes the body, unless it is that of an error.
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
		body.Code, body.Message = connect.Code(said.Code).String(), readable(said.Message)
		body.Details = append(body.Details, said.Details...)
	} else {
		body.Code, body.Message = codeOfStatus(a.status).String(), readable(a.failed.String())
	}
	a.Header().Del("Content-Encoding")
	body.Write(a.ResponseWriter, a.status)
}

// readable returns a message without the prefix and the odd spaces with which the proto library marks its texts.
func readable(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "\u00a0", " ")
	return strings.ReplaceAll(text, "proto: ", "")
}

// codeOfStatus returns the code of an error that has none.
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
