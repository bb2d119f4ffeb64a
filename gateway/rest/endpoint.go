package rest

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// endpoint serves one route of a call.
type endpoint struct {
	door     *Door
	call     protoreflect.MethodDescriptor
	route    v1.Route
	segments []string // of the route's path
	// document is the message that accepts a definition in its source form, or nil if the body accepts none.
	document protoreflect.MessageDescriptor
	replaces bool // sets the field replace unless the request does
}

func newEndpoint(d *Door, call protoreflect.MethodDescriptor, route v1.Route) *endpoint {
	e := &endpoint{door: d, call: call, route: route, segments: strings.Split(route.Path, "/")}
	body := call.Input()
	if route.Body != "*" {
		field := body.Fields().ByName(protoreflect.Name(route.Body))
		if field == nil || field.Message() == nil || field.IsList() || field.IsMap() {
			return e
		}
		body = field.Message()
	}
	if field := body.Fields().ByName(documentField); field != nil && field.Kind() == protoreflect.StringKind {
		e.document = body
	}
	return e
}

// ServeHTTP serves a request for the call.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, status, err := e.readBody(w, r)
	if err != nil {
		rpcerror.WriteJSON(w, status, err)
		return
	}
	query, err := e.readQuery(r)
	if err == nil {
		err = e.checkAgreement(r, query, body)
	}
	if e.replaces && !query.Has("replace") && !hasField(body, "replace") {
		query.Set("replace", "true")
	}
	if err != nil {
		rpcerror.WriteJSON(w, 0, err)
		return
	}
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = e.escapedPath(r.URL.Path), "", query.Encode()
	for _, name := range callHeaders {
		r.Header.Del(name)
	}
	if body != nil {
		r.Header.Set("Content-Type", jsonType)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer := &answer{ResponseWriter: w}
	e.door.transcode.ServeHTTP(answer, r)
	answer.finish()
}

// isVariable reports whether a segment of a route's path is a variable.
func isVariable(segment string) bool { return strings.HasPrefix(segment, "{") }

// escapedPath returns the path of the route with the variables of a request's path, escaped as vanguard expects them. An unescaped
// colon would start a verb.
func (e *endpoint) escapedPath(path string) string {
	parts, escaped := strings.Split(path, "/"), slices.Clone(e.segments)
	for i, segment := range e.segments {
		if isVariable(segment) {
			escaped[i] = strings.ReplaceAll(url.PathEscape(parts[i]), ":", "%3A")
		}
	}
	return strings.Join(escaped, "/")
}

// variables returns the values of the route's variables in a path.
func (e *endpoint) variables(path string) map[string]string {
	values := map[string]string{}
	parts := strings.Split(path, "/")
	for i, segment := range e.segments {
		if isVariable(segment) {
			values[strings.Trim(segment, "{}")] = parts[i]
		}
	}
	return values
}
