package a2a

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"switchyard/workflows/nearest"
)

// method describes a JSON-RPC method.
type method struct {
	// params returns a new value to decode the parameters into.
	params func() any
	// isStream marks a method that answers with a stream of events.
	isStream bool
}

// paramsOf returns a constructor for parameters of type T.
func paramsOf[T any]() func() any { return func() any { return new(T) } }

// methods holds the methods of the protocol by name.
var methods = map[string]method{
	"SendMessage":                      {params: paramsOf[a2a.SendMessageRequest]()},
	"SendStreamingMessage":             {params: paramsOf[a2a.SendMessageRequest](), isStream: true},
	"GetTask":                          {params: paramsOf[a2a.GetTaskRequest]()},
	"ListTasks":                        {params: paramsOf[a2a.ListTasksRequest]()},
	"CancelTask":                       {params: paramsOf[a2a.CancelTaskRequest]()},
	"SubscribeToTask":                  {params: paramsOf[a2a.SubscribeToTaskRequest](), isStream: true},
	"GetExtendedAgentCard":             {params: paramsOf[a2a.GetExtendedAgentCardRequest]()},
	"CreateTaskPushNotificationConfig": {params: paramsOf[a2a.PushConfig]()},
	"GetTaskPushNotificationConfig":    {params: paramsOf[a2a.GetTaskPushConfigRequest]()},
	"ListTaskPushNotificationConfigs":  {params: paramsOf[a2a.ListTaskPushConfigRequest]()},
	"DeleteTaskPushNotificationConfig": {params: paramsOf[a2a.DeleteTaskPushConfigRequest]()},
}

// olderMethods maps methods of protocol versions before 1.0 to their replacements.
var olderMethods = map[string]string{
	"message/send": "SendMessage", "message/stream": "SendStreamingMessage", "tasks/get": "GetTask", "tasks/list": "ListTasks",
	"tasks/cancel": "CancelTask", "tasks/resubscribe": "SubscribeToTask", "agent/getAuthenticatedExtendedCard": "GetExtendedAgentCard",
}

// envelope is a JSON-RPC request.
type envelope struct {
	Version string          `json:"jsonrpc"`
	ID      any             `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// parseEnvelope parses and checks a request. On error, the returned envelope still holds what the answer needs: a valid id,
// and the method if it is a streaming method.
func parseEnvelope(body []byte) (envelope, error) {
	var request envelope
	if text := bytes.TrimSpace(body); len(text) > 0 && text[0] == '[' && json.Valid(text) {
		return envelope{}, errorf(a2a.ErrInvalidRequest, "batch requests are not supported; send each request separately")
	}
	if err := decode(body, &request); err != nil {
		if errors.Is(err, a2a.ErrInvalidParams) {
			err = errorf(a2a.ErrInvalidRequest, "%v", err)
		}
		return envelope{ID: validID(request.ID)}, err
	}
	known, isKnown := methods[request.Method]
	checked := envelope{ID: validID(request.ID)}
	if known.isStream {
		checked.Method = request.Method
	}
	switch {
	case request.ID != nil && checked.ID == nil:
		return checked, errorf(a2a.ErrInvalidRequest, "`id` is neither a string nor a number below 2^53")
	case request.Version != "2.0":
		return checked, errorf(a2a.ErrInvalidRequest, "`jsonrpc` is %.20q; it must be \"2.0\"", request.Version)
	case request.Method == "":
		return checked, errorf(a2a.ErrInvalidRequest, "the request has no `method`; known methods are %s", listNames(methodNames()))
	case !isKnown:
		return checked, errorf(a2a.ErrMethodNotFound, "there is no method %.80q; %s", request.Method, nearMethod(request.Method))
	}
	if len(request.Params) == 0 || string(request.Params) == "null" {
		request.Params = json.RawMessage("{}")
	}
	if request.Params[0] != '{' {
		return checked, errorf(a2a.ErrInvalidParams, "`params` must be an object with the named parameters of %s", request.Method)
	}
	return request, decodeParams(request.Params, known.params())
}

// validID returns the id if a response may carry it, or nil.
func validID(id any) any {
	switch value := id.(type) {
	case string:
		return id
	case float64:
		if math.Abs(value) < 1<<53 {
			return id
		}
	}
	return nil
}

// methodNames returns the names of the methods.
func methodNames() []string { return slices.Sorted(maps.Keys(methods)) }

// nearMethod returns a hint for an unknown method: its replacement, a similar name or the list of methods.
func nearMethod(name string) string {
	if now, ok := olderMethods[name]; ok {
		return "it belongs to an older protocol version; use " + now + " of version " + string(a2a.Version)
	}
	if hint := nearest.DidYouMean(name, methodNames()); hint != "" {
		return hint
	}
	return "there are " + listNames(methodNames())
}

// checkEnvelopes passes valid JSON-RPC requests to next and marks the others for refusal with a reason.
func checkEnvelopes(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			writeError(w, http.StatusMethodNotAllowed, "UNIMPLEMENTED", "requests must use POST; GET "+CardPath+" returns the agent card")
			return
		}
		body, err := readBody(w, r)
		var request envelope
		if err == nil {
			request, err = parseEnvelope(body)
		}
		if err != nil {
			r = withRefusal(r, err)
			if request.Version, request.Params = "2.0", json.RawMessage("{}"); !methods[request.Method].isStream {
				request.Method = "GetTask"
			}
		}
		body, err = json.Marshal(request)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError) // unreachable: everything was decoded from JSON
			return
		}
		next.ServeHTTP(w, withBody(r, body))
	})
}

// withBody returns a copy of a request with another body.
func withBody(r *http.Request, body []byte) *http.Request {
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return r
}

// writeError answers a request that no binding of the protocol handles, in the error format of HTTP+JSON.
func writeError(w http.ResponseWriter, status int, word, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": status, "status": word, "message": strings.TrimSpace(text)}})
}
