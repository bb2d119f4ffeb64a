package rest

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
	"switchyard/workflows/nearest"
)

// prefix is the path prefix of all calls.
const prefix = "/v1"

// aliases are the first segments of paths that are also served without the prefix.
var aliases = []string{"workflows", "runs"}

// storeAlias is the path without the prefix under which a definition is stored, and replaces an existing one unless the request
// forbids it.
const storeAlias = "POST /workflows"

// validatePath returns an error for a path that no client sends on purpose. Names contain no slash, so an escaped slash in
// a segment is a mistake.
func validatePath(u *url.URL) error {
	switch text := u.Path; {
	case strings.Contains(strings.ToLower(u.EscapedPath()), "%2f"):
		return rpcerror.Invalid("path %.200q has an escaped slash (%%2F), which names cannot contain", u.EscapedPath())
	case !utf8.ValidString(text):
		return rpcerror.Invalid("the path %.200q is not UTF-8", text)
	case strings.ContainsFunc(text, unicode.IsControl):
		return rpcerror.Invalid("path %.200q contains a control character", text)
	case text != "" && text != "/" && path.Clean(text) != strings.TrimSuffix(text, "/"):
		return rpcerror.Invalid("the path %.200q has an empty segment, \".\" or \"..\"; write it as %.200q", text, path.Clean(text))
	}
	return nil
}

// withoutAlias returns a request with the canonical path: with the prefix, and without a trailing slash.
func withoutAlias(r *http.Request) *http.Request {
	text := cmp.Or(strings.TrimSuffix(r.URL.Path, "/"), "/")
	for _, first := range aliases {
		if (text == "/"+first || strings.HasPrefix(text, "/"+first+"/")) && r.Method+" "+text != storeAlias {
			text = prefix + text
			break
		}
	}
	if text == r.URL.Path {
		return r
	}
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = text, ""
	return r
}

// allowedMethods returns the methods that a mux accepts for the path of a request with a wrong method, or "" if the mux
// does not have the path.
func allowedMethods(mux *http.ServeMux, r *http.Request) string {
	if mux == nil {
		return ""
	}
	said := discarded{header: http.Header{}}
	handler, pattern := mux.Handler(r)
	if pattern != "" {
		return ""
	}
	handler.ServeHTTP(&said, r)
	return said.header.Get("Allow")
}

// refuse responds to a request for an unknown path or with an unsupported method.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request) {
	if allowed := cmp.Or(allowedMethods(d.routes, r), allowedMethods(d.others, r)); allowed != "" {
		w.Header().Set("Allow", allowed)
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		rpcerror.WriteJSON(w, http.StatusMethodNotAllowed, rpcerror.Invalid("%s takes %s, not %s", r.URL.Path, allowed, r.Method))
		return
	}
	if calls := connect.NewErrorWriter(connect.WithRequireConnectProtocolHeader()); calls.IsSupported(r) {
		// An error means that the client has disconnected.
		_ = calls.Write(w, r, connect.NewError(connect.CodeUnimplemented, fmt.Errorf("unknown procedure %.200q", r.URL.Path)))
		return
	}
	hint := "/openapi.json lists all paths"
	if near := d.nearPath(r.Method, r.URL.Path); near != "" {
		hint = "did you mean " + near + "?"
	}
	rpcerror.WriteJSON(w, http.StatusNotFound, rpcerror.NotFound("unknown path %.200q; %s", r.URL.Path, hint))
}

// foreignPrefix matches the prefixes under which clients expect the paths.
var foreignPrefix = regexp.MustCompile(`^(/api)?(/v[0-9]+)?/`)

// nearPath returns the path that a request with an unknown path was probably meant for, or "" if none is near. The paths of the
// method are compared without the values of their variables.
func (d *Door) nearPath(method, path string) string {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	parts := strings.Split(foreignPrefix.ReplaceAllLiteralString(path, prefix+"/"), "/")
	var near []string
	for _, template := range d.templates[method] {
		segments := strings.Split(template, "/")
		if len(segments) != len(parts) {
			continue
		}
		asked, known := slices.Clone(parts), slices.Clone(segments)
		for i := range segments {
			if isVariable(segments[i]) {
				asked[i], known[i], segments[i] = "", "", parts[i]
			}
		}
		if text := strings.Join(known, "/"); slices.Equal(asked, known) || nearest.Word(strings.Join(asked, "/"), []string{text}) != "" {
			near = append(near, strings.Join(segments, "/"))
		}
	}
	if len(near) == 0 {
		return ""
	}
	return nearest.Rank(path, near)[0]
}

// discarded is a response writer that keeps only the headers.
type discarded struct {
	header http.Header
}

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d *discarded) WriteHeader(int)             {}
