package a2a

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

// restPaths holds the paths below RESTPath with their methods.
var restPaths = map[string][]string{
	"/message:send":                         {http.MethodPost},
	"/message:stream":                       {http.MethodPost},
	"/tasks":                                {http.MethodGet},
	"/tasks/{task}":                         {http.MethodGet, http.MethodPost},
	"/tasks/{task}/pushNotificationConfigs": {http.MethodGet, http.MethodPost},
	"/tasks/{task}/pushNotificationConfigs/{id}": {http.MethodGet, http.MethodDelete},
	"/extendedAgentCard":                         {http.MethodGet},
}

const restHelp = "the paths are /message:send, /message:stream, /tasks, /tasks/ID, /tasks/ID:cancel and /tasks/ID:subscribe, below " + RESTPath

// checkREST passes valid HTTP+JSON requests to next and refuses the others with a reason.
func checkREST(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, "NOT_FOUND", "there is no path "+strconv.Quote(RESTPath+r.URL.Path)+"; "+restHelp)
	})
	for path, allowed := range restPaths {
		for _, verb := range allowed {
			mux.HandleFunc(verb+" "+path, func(w http.ResponseWriter, r *http.Request) { serveREST(next, w, r) })
		}
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { refuseMethod(w, r, allowed...) })
	}
	return mux
}

// refuseMethod answers a request whose method its path does not allow.
func refuseMethod(w http.ResponseWriter, r *http.Request, allowed ...string) {
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	writeError(w, http.StatusMethodNotAllowed, "UNIMPLEMENTED", RESTPath+r.URL.Path+" takes "+strings.Join(allowed, " or ")+", not "+r.Method)
}

// serveREST serves a request whose path allows its method.
func serveREST(next http.Handler, w http.ResponseWriter, r *http.Request) {
	_, action, _ := strings.Cut(r.PathValue("task"), ":")
	if action == "cancel" && r.Method != http.MethodPost {
		refuseMethod(w, r, http.MethodPost)
		return
	}
	err := checkQuery(r.URL.Query())
	if err == nil && r.Method == http.MethodPost {
		r, err = checkBody(w, r, action)
	}
	if err != nil {
		r = withRefusal(r, err)
		// A bare list request cannot fail in the binding before the interceptors return the error.
		r.Method, r.URL, r.Body = http.MethodGet, &url.URL{Path: "/tasks"}, http.NoBody
	}
	if action == "subscribe" || r.URL.Path == "/message:stream" {
		stream := &restStream{ResponseWriter: w}
		defer stream.end()
		w = stream
	}
	next.ServeHTTP(w, r)
}

// checkQuery returns an error if a query parameter is malformed.
func checkQuery(query url.Values) error {
	for name, check := range map[string]struct {
		is    string
		parse func(string) error
	}{
		"pageSize":             {"number", func(text string) error { _, err := strconv.Atoi(text); return err }},
		"historyLength":        {"number", func(text string) error { _, err := strconv.Atoi(text); return err }},
		"includeArtifacts":     {"boolean", func(text string) error { _, err := strconv.ParseBool(text); return err }},
		"statusTimestampAfter": {"time such as 2026-01-31T12:00:00Z", func(text string) error { _, err := time.Parse(time.RFC3339, text); return err }},
	} {
		if text := query.Get(name); text != "" && check.parse(text) != nil {
			return errorf(a2a.ErrInvalidParams, "`%s` is %.80q, which is not a %s", name, text, check.is)
		}
	}
	return nil
}

// cancelKey is the context key of the metadata of a cancellation.
type cancelKey struct{}

// checkBody checks the body of a request. It returns the request with the body readable again, and with the metadata of a
// cancellation in its context, because the binding drops them.
func checkBody(w http.ResponseWriter, r *http.Request, action string) (*http.Request, error) {
	body, err := readBody(w, r)
	if err != nil {
		return r, err
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/message:"):
		err = decodeParams(body, &a2a.SendMessageRequest{})
	case action == "cancel" && len(bytes.TrimSpace(body)) > 0:
		var request a2a.CancelTaskRequest
		err = decodeParams(body, &request)
		r = r.WithContext(context.WithValue(r.Context(), cancelKey{}, request.Metadata))
	case action != "cancel" && action != "subscribe" && r.PathValue("id") == "" && !strings.HasSuffix(r.URL.Path, "/pushNotificationConfigs"):
		err = errorf(a2a.ErrInvalidRequest, "%s%s has no action; append :cancel or :subscribe", RESTPath, r.URL.Path)
	}
	return withBody(r, body), err
}
