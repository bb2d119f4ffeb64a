package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// httpAnswer is the response to a REST request.
type httpAnswer struct {
	status int
	header http.Header
	text   string
	value  map[string]any
}

// rest sends a request as curl would. The headers are pairs of name and value.
func (f *fixture) rest(t *testing.T, method, path, body string, headers ...string) httpAnswer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, f.server.URL(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque = "//" + f.server.Address() + path // verbatim, including escapes
	if body == "" {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	// A server closes a connection soon after it has refused a large body, and a slow client may then lose the answer.
	for tries := 1; len(body) > 1<<20 && isReset(err) && tries < 10; tries++ {
		again := req.Clone(t.Context())
		again.Body = io.NopCloser(strings.NewReader(body))
		res, err = client.Do(again)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	a := httpAnswer{status: res.StatusCode, header: res.Header, text: string(text)}
	if len(text) > 0 {
		if err := json.NewDecoder(bytes.NewReader(text)).Decode(&a.value); err != nil {
			t.Errorf("%s %s is answered with %d and no JSON object: %v\n%s", method, path, a.status, err, text)
		}
	}
	return a
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func (a httpAnswer) message() string { text, _ := a.value["message"].(string); return text }

const jsonHeader = "application/json"

// TestRunLifecycleOverREST covers the lifecycle of a run over REST alone.
func TestRunLifecycleOverREST(t *testing.T) {
	t.Parallel()
	f := start(t)
	definition := document("rest-life", "build", "test")
	put := f.rest(t, "POST", "/v1/workflows", definition, "Content-Type", "application/yaml")
	if put.status != 200 || put.value["name"] != "rest-life" || put.value["replaced"] != false {
		t.Fatalf("put: %d %s", put.status, put.text)
	}
	if again := f.rest(t, "POST", "/workflows", definition, "Content-Type", "application/yaml"); again.status != 409 || again.value["code"] != "already_exists" {
		t.Errorf("put again: %d %s", again.status, again.text)
	}
	for _, path := range []string{"/v1/workflows?replace=true", "/workflows?replace=true"} {
		if again := f.rest(t, "POST", path, definition, "Content-Type", "text/yaml; charset=utf-8"); again.status != 200 || again.value["replaced"] != true {
			t.Errorf("replace: %d %s", again.status, again.text)
		}
	}
	if again := f.rest(t, "PUT", "/v1/workflows/rest-life", definition, "Content-Type", "application/yaml"); again.status != 200 || again.value["replaced"] != true {
		t.Errorf("PUT: %d %s", again.status, again.text)
	}
	if other := f.rest(t, "PUT", "/v1/workflows/other", definition, "Content-Type", "application/yaml"); other.status != 400 || !strings.Contains(other.message(), `named "rest-life", not "other"`) {
		t.Errorf("PUT under another name: %d %s", other.status, other.text)
	}

	var ids []any
	for _, want := range []struct {
		status  int
		existed bool
	}{{201, false}, {200, true}} {
		keyed := f.rest(t, "POST", "/v1/runs?idempotencyKey=rest-life", definition, "Content-Type", "application/yaml")
		if ids = append(ids, keyed.value["id"]); keyed.status != want.status || keyed.value["existed"] != want.existed || ids[0] != keyed.value["id"] {
			t.Errorf("submit with a key: %d %s", keyed.status, keyed.text)
		}
	}

	submitted := f.rest(t, "POST", "/v1/runs", `{"workflow":"rest-life","input":{"channel":"beta"}}`, "Content-Type", "application/x-www-form-urlencoded")
	id, _ := submitted.value["id"].(string)
	if submitted.status != 201 || id == "" || submitted.header.Get("Location") != "/v1/runs/"+id {
		t.Fatalf("submit: %d %s %v", submitted.status, submitted.text, submitted.header)
	}
	for _, path := range []string{"/v1/runs/" + id, "/runs/" + id, "/v1/runs/" + id + "/"} {
		run := f.rest(t, "GET", path, "")
		if run.status != 200 || run.value["id"] != id || run.value["state"] != "running" || run.value["generation"] != 0.0 || run.value["problem"] != "" {
			t.Errorf("GET %s: %d %s", path, run.status, run.text)
		}
	}
	if head := f.rest(t, "HEAD", "/v1/runs/"+id, ""); head.status != 200 || head.text != "" {
		t.Errorf("HEAD: %d %q", head.status, head.text)
	}
	if none := f.rest(t, "GET", "/v1/runs?name=no-such-workflow", ""); none.text != `{"items":[],"nextPageToken":""}` && none.value["items"] == nil {
		t.Errorf("an empty list: %d %s", none.status, none.text)
	}
	if paused := f.rest(t, "POST", "/v1/runs/"+id+"/pause", `{"reason":"lunch"}`, "Content-Type", jsonHeader); paused.status != 200 {
		t.Errorf("pause: %d %s", paused.status, paused.text)
	}
	if again := f.rest(t, "POST", "/v1/runs/"+id+"/cancel", ""); again.status != 200 {
		t.Errorf("cancel without a body: %d %s", again.status, again.text)
	}
	if gone := f.rest(t, "DELETE", "/v1/workflows/rest-life", ""); gone.status != 200 {
		t.Errorf("delete: %d %s", gone.status, gone.text)
	}
}

// TestRESTErrorsHaveOneForm checks that refusals by handlers, validation rules and guards have the same form as those of the
// REST layer itself, and name the field and the remedy.
func TestRESTErrorsHaveOneForm(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "rest-bad")
	large := `{"document":"` + strings.Repeat("x", 10<<20) + `"}`
	for name, c := range map[string]struct {
		method, path, body, kind string
		status                   int
		code, message            string
	}{
		"wrong method":          {"DELETE", "/v1/runs", "", "", 405, "invalid_argument", "takes GET, HEAD, POST"},
		"unknown run":           {"GET", "/v1/runs/none-123", "", "", 404, "not_found", `no run "none-123"`},
		"unknown workflow":      {"GET", "/v1/workflows/none", "", "", 404, "not_found", `"none"`},
		"page of another list":  {"GET", "/v1/runs?pageToken=bm9uc2Vuc2U", "", "", 400, "invalid_argument", "page"},
		"large":                 {"POST", "/v1/runs", large, jsonHeader, 413, "resource_exhausted", "4 MiB"},
		"bad definition":        {"POST", "/v1/workflows", "name: x\ntasks: { a: { type: shell, spec: { comand: 'true' } } }", "application/yaml", 400, "invalid_argument", "comand"},
		"no workflow":           {"POST", "/v1/runs", `{}`, jsonHeader, 400, "invalid_argument", "source"},
		"wrong state":           {"POST", "/v1/runs/" + id + "/resume", "", "", 409, "aborted", "is running"},
		"unknown task":          {"POST", "/v1/runs/" + id + "/tasks/biuld/kill", "", "", 404, "not_found", "build"},
		"unknown node":          {"POST", "/v1/nodes/none/drain", "", "", 404, "not_found", `"none"`},
		"unknown state of node": {"GET", "/v1/nodes?state=happy", "", "", 400, "invalid_argument", "state"},
	} {
		t.Run(name, func(t *testing.T) {
			var headers []string
			if c.kind != "" {
				headers = []string{"Content-Type", c.kind}
			}
			got := f.rest(t, c.method, c.path, c.body, headers...)
			if got.status != c.status || got.value["code"] != c.code || !strings.Contains(got.message(), c.message) || got.message() == "" {
				t.Errorf("%d %.600s", got.status, got.text)
			}
			if kind := got.header.Get("Content-Type"); kind != jsonHeader {
				t.Errorf("Content-Type: %s", kind)
			}
			if _, ok := got.value["details"].([]any); !ok {
				t.Errorf("no details: %.300s", got.text)
			}
		})
	}
	definition := f.rest(t, "POST", "/v1/workflows", "name: x\ntasks:\n  a: { typ: shell }\n", "Content-Type", "application/yaml")
	details, _ := definition.value["details"].([]any)
	if len(details) != 1 {
		t.Fatalf("a bad definition: %s", definition.text)
	}
	failure, _ := details[0].(map[string]any)
	problems, _ := failure["problems"].([]any)
	if len(problems) == 0 || failure["@type"] != "type.googleapis.com/switchyard.v1.ValidationFailure" {
		t.Fatalf("a bad definition: %s", definition.text)
	}
	if first, _ := problems[0].(map[string]any); first["line"] != 3.0 || first["column"] != 8.0 || first["hint"] != "did you mean type?" {
		t.Errorf("a problem of a definition: %v", problems)
	}
	if got := f.rest(t, "DELETE", "/v1/runs", ""); got.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow: %q", got.header.Get("Allow"))
	}
}
