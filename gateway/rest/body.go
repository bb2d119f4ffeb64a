package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"unicode/utf8"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
)

// Content types of request bodies.
const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded"
)

// yamlTypes are the content types of YAML definitions.
var yamlTypes = []string{"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"}

// documentField is the request field for a definition in its source form.
const documentField = "document"

// readBody returns the body of a request as JSON, or nil for a call without a body. With an error it returns the HTTP
// status, or 0 to derive the status from the code of the error.
func (e *endpoint) readBody(w http.ResponseWriter, r *http.Request) (body []byte, status int, err error) {
	if r.ContentLength > e.door.maxBody {
		return nil, http.StatusRequestEntityTooLarge, rpcerror.TooLarge(e.door.maxBody)
	}
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, e.door.maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, http.StatusRequestEntityTooLarge, rpcerror.TooLarge(e.door.maxBody)
	}
	if err != nil {
		status = 0
		if rpcerror.CodeOf(err) == connect.CodeDeadlineExceeded {
			status = http.StatusRequestTimeout
		}
		return nil, status, err
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, http.StatusUnsupportedMediaType, rpcerror.Invalid("content encoding %.80q is not supported; send the body uncompressed", encoding)
	}
	if len(bytes.TrimSpace(body)) == 0 {
		if e.route.Body == "" {
			return nil, 0, nil
		}
		return []byte("{}"), 0, nil
	}
	if e.route.Body == "" {
		return nil, http.StatusBadRequest, rpcerror.Invalid("%s %s takes no body; send its parameters in the path and the query", r.Method, e.route.Path)
	}
	kind, err := bodyType(r)
	if err != nil {
		return nil, http.StatusUnsupportedMediaType, err
	}
	switch {
	case kind == jsonType, kind == formType && bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")):
		if e.document != nil && isDefinition(body) {
			return wrapDocument(body)
		}
		body, err = e.translateFields(body)
		return body, 0, err
	case slices.Contains(yamlTypes, kind) && e.document != nil:
		return wrapDocument(body)
	}
	takes := jsonType
	if e.document != nil {
		takes += ", and a definition as " + yamlTypes[0]
	}
	return nil, http.StatusUnsupportedMediaType, rpcerror.Invalid("%s %s takes a body of type %s, not %.80s", r.Method, e.route.Path, takes, kind)
}

// bodyType returns the media type of a body. Without a header it is JSON.
func bodyType(r *http.Request) (string, error) {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return jsonType, nil
	}
	kind, _, err := mime.ParseMediaType(header)
	if err != nil {
		return "", rpcerror.Invalid("invalid Content-Type %.80q; send %s", header, jsonType)
	}
	return kind, nil
}

// isDefinition reports whether a JSON body is a definition rather than a request that contains one: definitions have
// tasks.
func isDefinition(body []byte) bool {
	var top struct{ Tasks json.RawMessage }
	return json.Unmarshal(body, &top) == nil && top.Tasks != nil
}

// hasField reports whether a JSON body sets a field.
func hasField(body []byte, name string) bool {
	f := fields{}
	return json.Unmarshal(body, &f) == nil && f[name] != nil
}

// wrapDocument returns the request body that contains a document.
func wrapDocument(document []byte) ([]byte, int, error) {
	if !utf8.Valid(document) {
		return nil, http.StatusBadRequest, rpcerror.Invalid("the document is not UTF-8")
	}
	body, err := json.Marshal(map[string]string{documentField: string(document)})
	return body, 0, err
}
