package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
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

// places returns the fields of a definition in which an error has found problems.
func (a httpAnswer) places() (paths []string) {
	details, _ := a.value["details"].([]any)
	for _, detail := range details {
		failure, _ := detail.(map[string]any)
		problems, _ := failure["problems"].([]any)
		for _, problem := range problems {
			fields, _ := problem.(map[string]any)
			path, _ := fields["path"].(string)
			paths = append(paths, path)
		}
	}
	return paths
}

// TestRunLifecycleOverREST covers the lifecycle of a run over REST alone.
func TestRunLifecycleOverREST(t *testing.T) {
	t.Parallel()
	f := start(t)
	definition := document("rest-life", "build", "test")
	put := f.rest(t, "POST", "/v1/workflows", definition, "Content-Type", "application/yaml")
	if put.status != 200 || put.value["name"] != "rest-life" || put.value["replaced"] != false {
		t.Fatalf("put: %d %s", put.status, put.text)
	}
	if again := f.rest(t, "POST", "/v1/workflows", definition, "Content-Type", "application/yaml"); again.status != 409 || again.value["code"] != "already_exists" {
		t.Errorf("put again: %d %s", again.status, again.text)
	}
	for path, method := range map[string]string{"/v1/workflows?replace=true": "POST", "/workflows": "POST", "/v1/workflows/rest-life": "PUT"} {
		if again := f.rest(t, method, path, definition, "Content-Type", "text/yaml; charset=utf-8"); again.status != 200 || again.value["replaced"] != true {
			t.Errorf("%s %s: %d %s", method, path, again.status, again.text)
		}
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

// TestWorkflowIsTriggeredOverREST starts runs of a stored workflow, with and without a key.
func TestWorkflowIsTriggeredOverREST(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.putWorkflow(t, "name: hook\ninputs: { branch: { required: true }, depth: { type: integer, default: 1 } }\ntasks: { a: { type: shell, spec: { command: 'true' } } }")
	for _, method := range []string{"POST", "PUT"} {
		trigger := func(body string) httpAnswer {
			return f.rest(t, method, "/v1/workflows/hook/trigger", body, "Content-Type", jsonHeader, "Idempotency-Key", "push-1 "+method)
		}
		first := trigger(`{"branch":"main"}`)
		id, _ := first.value["id"].(string)
		if first.status != 201 || first.header.Get("Location") != "/v1/runs/"+id {
			t.Fatalf("%s: %d %s", method, first.status, first.text)
		}
		if again := trigger(`{"branch":"main"}`); again.status != 200 || again.value["id"] != id || again.value["existed"] != true {
			t.Errorf("%s with the same key: %d %s", method, again.status, again.text)
		}
		if other := trigger(`{"branch":"dev"}`); other.status != 409 {
			t.Errorf("%s of another input with the same key: %d %s", method, other.status, other.text)
		}
		if got := f.get(t, id).GetInput().AsMap(); got["branch"] != "main" || got["depth"] != 1.0 {
			t.Errorf("the input is %v", got)
		}
	}
	if run := f.rest(t, "POST", "/v1/workflows/hook/runs", `{"input":{"branch":"x"},"batch":"night","options":{"heartbeatTimeout":"30s"}}`, "Content-Type", jsonHeader); run.status != 201 {
		t.Errorf("runs: %d %s", run.status, run.text)
	}
	for name, c := range map[string]struct {
		path, body, key string
		message         string
	}{
		"two keys":   {"/v1/workflows/hook/runs", `{"input":{"branch":"x"},"idempotencyKey":"a"}`, "b", "differ"},
		"no key":     {"/v1/workflows/hook/trigger", `{"branch":"x"}`, "", "1 to 255"},
		"a long key": {"/v1/workflows/hook/trigger", `{"branch":"x"}`, strings.Repeat("k", 256), "1 to 255"},
	} {
		if got := f.rest(t, "POST", c.path, c.body, "Content-Type", jsonHeader, "Idempotency-Key", c.key); got.status != 400 || !strings.Contains(got.message(), c.message) {
			t.Errorf("%s: %d %s", name, got.status, got.text)
		}
	}
}

// TestRESTRefusesCommonMistakes checks the status, code and message with which common mistakes are refused, in the order of
// the lifecycle of a workflow: stored, started, inspected, controlled, ended. All refusals have one form.
func TestRESTRefusesCommonMistakes(t *testing.T) {
	t.Parallel()
	f := start(t)
	const yaml = "application/yaml"
	stored := "name: refusing\ndescription: Refuses\ninputs: { count: { type: number, required: true } }\ntasks: { build: { type: shell, spec: { command: 'true' } } }\n"
	f.putWorkflow(t, stored)
	open, closed := f.submit(t, "refusing-open"), f.submit(t, "refusing-closed")
	set(t, open, "test", 1, &v1.Task{State: v1.TaskCompleted, Type: v1.TypeShell})
	end(t, closed, "completed")
	running, ended := "/v1/runs/"+open, "/v1/runs/"+closed

	for _, c := range []struct {
		name, method, path, body, kind string
		status                         int
		code                           string
		words                          []string
	}{
		{"a document that is no YAML", "POST", "/v1/workflows", "name: x\ntasks: [\n", yaml, 400, "invalid_argument", []string{"definition"}},
		{"an empty document", "POST", "/v1/workflows", " ", yaml, 400, "invalid_argument", nil},
		{"a task of an unknown type", "POST", "/v1/workflows", "name: x\ntasks: { a: { type: shel, spec: {} } }", yaml, 400, "invalid_argument", []string{"tasks.a.type", "did you mean shell?"}},
		{"a cron that never fires", "POST", "/v1/workflows", "name: x\nschedule: { cron: '0 0 30 2 *' }\ntasks: { a: { type: shell, spec: { command: 'true' } } }", yaml, 400, "invalid_argument", []string{"schedule.cron"}},
		{"a name that is taken", "POST", "/v1/workflows", stored, yaml, 409, "already_exists", []string{"refusing"}},
		{"a large Connect call", "POST", "/switchyard.v1.RunService/SubmitRun", `{"document":"` + strings.Repeat("x", 10<<20) + `"}`, "", 413, "resource_exhausted", []string{"4 MiB"}},
		{"a large body", "POST", "/v1/runs", `{"document":"` + strings.Repeat("x", 10<<20) + `"}`, "", 413, "resource_exhausted", []string{"4 MiB"}},
		{"no workflow", "POST", "/v1/runs", `{}`, "", 400, "invalid_argument", []string{"source"}},

		{"an unknown workflow", "GET", "/v1/workflows/refusin", "", "", 404, "not_found", []string{"refusin"}},
		{"an unknown workflow deleted", "DELETE", "/v1/workflows/refusin", "", "", 404, "not_found", []string{"refusin"}},
		{"an unknown workflow triggered", "POST", "/v1/workflows/refusin/trigger", "{}", "", 404, "not_found", []string{"did you mean refusing?"}},
		{"a run of an unknown workflow", "POST", "/v1/workflows/refusin/runs", "{}", "", 404, "not_found", []string{"refusin"}},
		{"an input that is missing", "POST", "/v1/workflows/refusing/trigger", "", "", 400, "invalid_argument", []string{"count"}},
		{"an input of another type", "POST", "/v1/workflows/refusing/trigger", `{"count": "many"}`, "", 400, "invalid_argument", []string{"count", "number"}},
		{"an input that is not declared", "POST", "/v1/workflows/refusing/trigger", `{"count": 1, "cuont": 2}`, "", 400, "invalid_argument", []string{"cuont"}},
		{"inputs that are no object", "POST", "/v1/workflows/refusing/trigger", `[1]`, "", 400, "invalid_argument", nil},

		{"an unknown run", "GET", "/v1/runs/refusing-none", "", "", 404, "not_found", []string{`no run "refusing-none"`}},
		{"an id with a NUL", "GET", "/v1/runs/a%00b", "", "", 400, "invalid_argument", nil},
		{"an unknown task", "GET", running + "/tasks/biuld", "", "", 404, "not_found", []string{"did you mean build?"}},
		{"tasks in an unknown state", "GET", running + "/tasks?state=runing", "", "", 400, "invalid_argument", []string{"state", "running"}},
		{"runs in an unknown state", "GET", "/v1/runs?state=runing", "", "", 400, "invalid_argument", []string{"state", "running"}},
		{"a page below zero", "GET", "/v1/runs?pageSize=-1", "", "", 400, "invalid_argument", []string{"pageSize is -1; it must be 0 to 1000"}},
		{"a mistyped state", "GET", "/v1/runs?state=fialed", "", "", 400, "invalid_argument", []string{`state is "fialed"`, "did you mean failed?"}},
		{"an unknown parameter", "GET", "/v1/runs?stat=failed", "", "", 400, "invalid_argument", []string{"stat"}},
		{"another method", "DELETE", "/v1/runs", "", "", 405, "invalid_argument", []string{"takes GET, HEAD, POST"}},
		{"a schedule with an odd name", "GET", "/v1/schedules/%C3%BC", "", "", 404, "not_found", nil},
		{"times of a schedule with an odd name", "GET", "/v1/schedules/%C3%BC/times", "", "", 404, "not_found", nil},
		{"a backfill that ends before it starts", "POST", "/v1/schedules/x/backfill", `{"from":"2026-01-02T00:00:00Z","to":"2026-01-01T00:00:00Z"}`, "", 400, "invalid_argument", []string{"before"}},
		{"a backfill of the future", "POST", "/v1/schedules/x/backfill", `{"from":"2026-01-02T00:00:00Z","to":"2999-01-01T00:00:00Z"}`, "", 400, "invalid_argument", []string{"in the future"}},
		{"a backfill without a start", "POST", "/v1/schedules/x/backfill", `{"to":"2026-01-01T00:00:00Z"}`, "", 400, "invalid_argument", []string{"from is missing"}},
		{"a node that is no text", "GET", "/v1/dead-letters?node=%FF", "", "", 400, "invalid_argument", nil},
		{"an unknown node", "POST", "/v1/nodes/none/drain", "", "", 404, "not_found", []string{`"none"`}},
		{"a deadline in the past", "POST", "/v1/nodes/none/drain", `{"deadline":"-1s"}`, "", 400, "invalid_argument", []string{"deadline"}},

		{"resume of a run that runs", "POST", running + "/resume", "", "", 409, "aborted", []string{"running"}},
		{"retry of a run that is open", "POST", running + "/retry", "", "", 409, "aborted", []string{"open"}},
		{"kill of a task that has ended", "POST", running + "/tasks/test/kill", "", "", 409, "aborted", []string{"completed"}},
		{"kill of an unknown task", "POST", running + "/tasks/biuld/kill", "", "", 404, "not_found", []string{"build"}},
		{"retry of a task that is no dead letter", "POST", "/v1/dead-letters/" + open + "/test/retry", "", "", 409, "aborted", []string{"test"}},
		{"pause of a run that has ended", "POST", ended + "/pause", "", "", 409, "aborted", []string{"already completed"}},
		{"cancel of a run that has ended", "POST", ended + "/cancel", "", "", 409, "aborted", []string{"already completed"}},
		{"kill of a task of a run that has ended", "POST", ended + "/tasks/build/kill", "", "", 409, "aborted", []string{"already completed"}},
		{"retry of a run that completed", "POST", ended + "/retry", "", "", 409, "aborted", nil},
	} {
		got := f.rest(t, c.method, c.path, c.body, "Content-Type", cmp.Or(c.kind, jsonHeader))
		_, hasDetails := got.value["details"].([]any)
		if code, _ := got.value["code"].(string); got.status != c.status || code != c.code || got.message() == "" || !hasDetails || got.header.Get("Content-Type") != jsonHeader {
			t.Errorf("%s: %d %.600s; want %d %s", c.name, got.status, got.text, c.status, c.code)
		}
		said := got.message() + strings.Join(got.places(), " ")
		for _, word := range c.words {
			if !strings.Contains(said, word) {
				t.Errorf("%s: %q lacks %q", c.name, said, word)
			}
		}
	}
}
