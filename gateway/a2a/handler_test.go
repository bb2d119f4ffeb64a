package a2a

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// serve sends a request to the handlers and returns the response.
func serve(t *testing.T, handlers Handlers, method, target, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	handler := handlers.JSONRPC
	if strings.HasPrefix(target, RESTPath) {
		handler = handlers.REST
	}
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body)))
	return w
}

// TestRequestsOfJSONRPCAreRefusedWithTheReason sends malformed requests and expects the id, code and reason of each error.
func TestRequestsOfJSONRPCAreRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	handlers := New(Config{})
	call := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"x","method":%q,"params":%s}`, method, params)
	}
	for name, test := range map[string]struct {
		body string
		id   any
		code int
		text string
	}{
		"nothing":                    {"", nil, -32700, "the body is empty"},
		"half an object":             {`{"jsonrpc": "2.0", `, nil, -32700, "the body is not valid JSON: unexpected end of JSON input, after 19 bytes"},
		"a batch":                    {"[" + call("ListTasks", "{}") + "]", nil, -32600, "batch requests are not supported"},
		"a text":                     {`"x"`, nil, -32600, "expected a JSON object, not a string"},
		"another version":            {`{"jsonrpc":"1.0","id":1,"method":"ListTasks"}`, 1.0, -32600, "`jsonrpc` is \"1.0\"; it must be \"2.0\""},
		"no version":                 {`{"id":1,"method":"ListTasks"}`, 1.0, -32600, "`jsonrpc` is \"\""},
		"an object as id":            {`{"jsonrpc":"2.0","id":{},"method":"ListTasks"}`, nil, -32600, "`id` is neither a string nor a number below 2^53"},
		"no method":                  {`{"jsonrpc":"2.0","id":1}`, 1.0, -32600, "the request has no `method`; known methods are CancelTask,"},
		"a number as method":         {`{"jsonrpc":"2.0","id":1,"method":3}`, 1.0, -32600, "`method` cannot be a number"},
		"a near method":              {call("SendMessages", "{}"), "x", -32601, `there is no method "SendMessages"; did you mean SendMessage?`},
		"an older method":            {call("message/send", "{}"), "x", -32601, "use SendMessage of version 1.0"},
		"another method":             {call("Frobnicate", "{}"), "x", -32601, "there are CancelTask,"},
		"no parameters":              {`{"jsonrpc":"2.0","id":"x","method":"SendMessage"}`, "x", -32602, "the request has no `message`"},
		"a list":                     {call("SendMessage", "[]"), "x", -32602, "`params` must be an object with the named parameters of SendMessage"},
		"a text as message":          {call("SendMessage", `{"message":"hello"}`), "x", -32602, "`message` cannot be a string"},
		"a number as parts":          {call("SendMessage", `{"message":{"parts":3.5}}`), "x", -32602, "`message.parts` cannot be a number"},
		"a list as text":             {call("SendMessage", `{"message":{"parts":[{"text":[]}]}}`), "x", -32602, "text` cannot be an array"},
		"an empty part":              {call("SendMessage", `{"message":{"parts":[{}]}}`), "x", -32602, "must have exactly one non-empty field of `text`, `data`, `url` and `raw`"},
		"a number that would change": {call("SendMessage", `{"message":{"parts":[{"data":{"ids":[1,9007199254740993]}}]}}`), "x", -32602, "message.parts[0].data.ids[1]: 9007199254740993 cannot be kept exactly"},
		"an id that would change":    {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ListTasks"}`, nil, -32600, "`id` is neither a string nor a number below 2^53"},
		"too much":                   {call("SendMessage", `{"message":{"messageId":"`+strings.Repeat("x", maxBody)+`"}}`), nil, -32602, "the body exceeds the limit of 4 MiB"},
	} {
		w := serve(t, handlers, http.MethodPost, Path, test.body)
		var answer struct {
			ID    any
			Error struct {
				Code    int
				Message string
				Data    []struct{ Reason string }
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
			t.Errorf("%s: %d, %v: %s", name, w.Code, err, w.Body)
		}
		if answer.ID != test.id || answer.Error.Code != test.code || !strings.Contains(answer.Error.Message, test.text) || len(answer.Error.Data) == 0 {
			t.Errorf("%s: %s\nwant id %v, %d, %q", name, w.Body, test.id, test.code, test.text)
		}
	}
	w := serve(t, handlers, http.MethodPost, Path, call("SendStreamingMessage", `{"message":"hello"}`))
	if text := w.Body.String(); !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") || !strings.Contains(text, "`message` cannot be a string") {
		t.Errorf("a stream that cannot begin: %v, %s", w.Header(), text)
	}
	if w := serve(t, handlers, http.MethodGet, Path, ""); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != http.MethodPost {
		t.Errorf("GET: %d, %s", w.Code, w.Body)
	}
}

// TestRequestsOfRESTAreRefusedWithTheReason sends malformed requests and expects the status and reason of each error.
func TestRequestsOfRESTAreRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	handlers := New(Config{})
	for name, test := range map[string]struct {
		method, path, body string
		status             int
		text               string
	}{
		"another path":       {"GET", "/task", "", 404, `there is no path \"/a2a/v1/task\"; the paths are /message:send,`},
		"another method":     {"PUT", "/tasks", "", 405, "/a2a/v1/tasks takes GET, not PUT"},
		"cancel by GET":      {"GET", "/tasks/x:cancel", "", 405, "takes POST, not GET"},
		"another action":     {"POST", "/tasks/x:pause", "", 400, "append :cancel or :subscribe"},
		"a page of words":    {"GET", "/tasks?pageSize=many", "", 400, "`pageSize` is \\\"many\\\", which is not a number"},
		"a word as time":     {"GET", "/tasks?statusTimestampAfter=now", "", 400, "which is not a time such as"},
		"nothing":            {"POST", "/message:send", "", 400, "the body is empty"},
		"half an object":     {"POST", "/message:send", "{", 400, "the body is not valid JSON"},
		"an empty part":      {"POST", "/message:stream", `{"message":{"parts":[{}]}}`, 400, "must have exactly one non-empty field of `text`"},
		"no message":         {"POST", "/message:send", "{}", 400, "the request has no `message`"},
		"a stream of none":   {"POST", "/message:stream", "{}", 400, "the request has no `message`"},
		"a reason as number": {"POST", "/tasks/x:cancel", `{"metadata":3}`, 400, "`metadata` cannot be a number"},
		"too much":           {"POST", "/message:send", strings.Repeat(" ", maxBody+1), 400, "the body exceeds the limit of 4 MiB"},
	} {
		w := serve(t, handlers, test.method, RESTPath+test.path, test.body)
		var answer struct{ Error struct{ Code int } }
		err := json.Unmarshal(w.Body.Bytes(), &answer)
		if err != nil || w.Code != test.status || answer.Error.Code != test.status || !strings.Contains(w.Body.String(), test.text) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d, %v: %s\nwant %d, %q", name, w.Code, err, w.Body, test.status, test.text)
		}
	}
}

// TestCancellationByRESTKeepsItsReason cancels a task with and without a body. Its requests have no ID, so that a client that repeats
// one does not end finally.
func TestCancellationByRESTKeepsItsReason(t *testing.T) {
	t.Parallel()
	runs := &fakeRuns{}
	handlers := New(Config{Services: Services{Runs: runs}})
	for body, want := range map[string]string{"": "cancel x ", `{"metadata":{"reason":"enough"}}`: "cancel x enough"} {
		if w := serve(t, handlers, http.MethodPost, RESTPath+"/tasks/x:cancel", body); w.Code != http.StatusNotFound || runs.last != want {
			t.Errorf("%d, %q, want %q: %s", w.Code, runs.last, want, w.Body)
		}
	}
}

// TestRESTStreamSendsErrorsAsErrorEvents sends an error as the first event of a stream and after another event.
func TestRESTStreamSendsErrorsAsErrorEvents(t *testing.T) {
	t.Parallel()
	const failed = `{"error":{"code":404,"message":"none"}}`
	write := func(events ...string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s := &restStream{ResponseWriter: w}
		s.Header().Set("Content-Type", "text/event-stream")
		s.WriteHeader(http.StatusOK)
		for _, event := range events {
			_, _ = fmt.Fprint(s, "id: 1\n")
			_, _ = fmt.Fprintf(s, "%s\n\n", event)
			s.Flush()
		}
		s.end()
		return w
	}
	if w := write("data: " + failed); w.Code != http.StatusNotFound || strings.TrimSpace(w.Body.String()) != failed || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("an error first: %d, %s", w.Code, w.Body)
	}
	const task = `data: {"task":{"metadata":{"error":{"code":404}}}}`
	if w := write(task, "data: "+failed); w.Code != http.StatusOK || w.Body.String() != "id: 1\n"+task+"\n\nevent: error\nid: 1\ndata: "+failed+"\n\n" {
		t.Errorf("an error after a task: %d, %s", w.Code, w.Body)
	}
	if w := write(": keep-alive"); w.Code != http.StatusOK || w.Body.String() != "id: 1\n: keep-alive\n\n" || !w.Flushed {
		t.Errorf("a comment: %d, %s", w.Code, w.Body)
	}
	if w := write(); w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("no event: %d, %v", w.Code, w.Header())
	}
}
