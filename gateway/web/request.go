package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
)

// request identifies the view that a caller looks at.
type request struct {
	path   string // of the URL, escaped
	values map[string]string
	query  url.Values
	caller *auth.Principal
	// isPersonal is set if the view depends on the name of the caller.
	isPersonal bool
}

// url returns the canonical address of the view.
func (r request) url() string {
	if query := r.query.Encode(); query != "" {
		return r.path + "?" + query
	}
	return r.path
}

// key identifies the content of the view. Callers with the same rights share it, unless the view is personal.
func (r request) key() string {
	rights := r.caller.Role.Word()
	if r.isPersonal || !r.caller.SeesAll() {
		rights += " " + r.caller.Name
	}
	return r.url() + "\x00" + rights
}

// callerContext returns a context in which calls are made in the name of the caller.
func (r request) callerContext(ctx context.Context) context.Context { return auth.With(ctx, r.caller) }

// requestOf parses the request for a view. Unknown parameters are errors.
func (v view) requestOf(r *http.Request) (request, error) {
	req := request{path: r.URL.EscapedPath(), values: map[string]string{}, query: url.Values{}, caller: auth.From(r.Context()), isPersonal: v.isPersonal}
	for part := range strings.SplitSeq(v.pattern, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimRight(name, ".}")
			req.values[name] = r.PathValue(name)
		}
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return request{}, rpcerror.Invalid("the query of the URL cannot be read: %w", err)
	}
	for _, name := range v.parameters {
		if value := values.Get(name); value != "" { // forms also send empty fields
			req.query.Set(name, value)
		}
		delete(values, name)
	}
	for name := range values {
		if len(v.parameters) == 0 {
			return request{}, rpcerror.Invalid("this page has no parameter %q", name)
		}
		return request{}, rpcerror.Invalid("this page has no parameter %q; it has %s", name, strings.Join(v.parameters, ", "))
	}
	return req, nil
}
