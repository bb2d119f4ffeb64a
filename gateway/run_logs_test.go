package gateway

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// lines returns the texts of a page of log lines.
func (a httpAnswer) lines(t *testing.T) (texts []string) {
	t.Helper()
	if a.status != 200 {
		t.Fatalf("%d %.500s", a.status, a.text)
	}
	for _, item := range a.value["items"].([]any) {
		texts = append(texts, item.(map[string]any)["text"].(string))
	}
	return texts
}

func TestListRunLogsPages(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "paged-logs")
	set(t, id, "build", 1, assigned(0))
	var text strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&text, "line %d of a log that takes more than one page: %s\n", i, strings.Repeat("x", 30))
	}
	text.WriteString("caf\xff\nwithout an end")
	writeLog(t, f.config.Store, id, "build", 0, 1, text.String())

	var joined strings.Builder
	pages := 0
	for token := ""; ; {
		pages++
		page := f.rest(t, "GET", "/v1/runs/"+id+"/tasks/build/logs?pageToken="+url.QueryEscape(token), "")
		page.lines(t)
		for _, item := range page.value["items"].([]any) {
			line := item.(map[string]any)
			joined.WriteString(line["text"].(string))
			if line["partial"] == false {
				joined.WriteString("\n")
			}
			if line["task"] != "build" || line["stream"] != "stdout" || line["attempt"] != 0.0 {
				t.Fatalf("a line is %v", line)
			}
		}
		if token = page.value["nextPageToken"].(string); token == "" {
			break
		}
	}
	if want := strings.ToValidUTF8(text.String(), "\uFFFD") + "\n"; joined.String() != want {
		t.Errorf("%d pages hold %d bytes, want %d", pages, joined.Len(), len(want))
	}
	if pages < 2 {
		t.Errorf("all lines are on %d page", pages)
	}
	last := f.rest(t, "GET", "/v1/runs/"+id+"/logs?tail=2", "").lines(t)
	if strings.Join(last, "|") != "caf\uFFFD|without an end" {
		t.Errorf("the tail is %q", last)
	}
	for path, want := range map[string]string{
		"/v1/runs/" + id + "/tasks/biuld/logs":           "did you mean build?",
		"/v1/runs/" + id + "/logs?tail=2&pageToken=abc":  "page_token cannot be combined",
		"/v1/runs/" + id + "/logs?pageToken=abc":         "page token",
		"/v1/runs/" + id + "/logs?stream=both":           "stream",
		"/v1/runs/" + id + "/logs?since=yesterday":       "since",
		"/v1/runs/" + id + "/tasks?state=happy":          "state",
		"/v1/runs/" + id + "/tasks/build%5B3%5D":         "no instance 3",
		"/v1/runs/" + id + "/tasks/none":                 "no task",
		"/v1/runs/none-1/tasks":                          "no run",
		"/v1/runs/" + id + "/tasks?pageToken=bm9uc2Vuc2": "page token",
	} {
		if got := f.rest(t, "GET", path, ""); got.status != 400 && got.status != 404 || !strings.Contains(got.message(), want) {
			t.Errorf("%s: %d %s", path, got.status, got.text)
		}
	}

	tasks := f.rest(t, "GET", "/runs/"+id+"/tasks?pageSize=1", "")
	items, _ := tasks.value["items"].([]any)
	if len(items) != 1 || items[0].(map[string]any)["name"] != "build" || items[0].(map[string]any)["state"] != "assigned" || tasks.value["total"] != 2.0 {
		t.Errorf("the tasks are %s", tasks.text)
	}
	second := f.rest(t, "GET", "/runs/"+id+"/tasks?pageSize=1&pageToken="+tasks.value["nextPageToken"].(string), "")
	if items, _ = second.value["items"].([]any); len(items) != 1 || items[0].(map[string]any)["name"] != "test" || second.value["nextPageToken"] != "" {
		t.Errorf("the second page is %s", second.text)
	}
	if one := f.rest(t, "GET", "/v1/runs/"+id+"/tasks/build", ""); one.status != 200 || one.value["task"].(map[string]any)["node"] != "n" {
		t.Errorf("the task is %s", one.text)
	}
	if waiting := f.rest(t, "GET", "/v1/runs/"+id+"/tasks?state=pending&brief=true", ""); waiting.value["total"] != 1.0 {
		t.Errorf("those that wait are %s", waiting.text)
	}
}

func TestWorkflowIsTriggeredOverREST(t *testing.T) {
	t.Parallel()
	f := start(t)
	definition := "name: hook\ninputs: { branch: { required: true }, depth: { type: integer, default: 1 } }\ntasks: { a: { type: shell, spec: { command: 'true' } } }"
	if put := f.rest(t, "PUT", "/v1/workflows/hook", definition, "Content-Type", "application/yaml"); put.status != 200 {
		t.Fatalf("put: %s", put.text)
	}
	for _, method := range []string{"POST", "PUT"} {
		first := f.rest(t, method, "/v1/workflows/hook/trigger", `{"branch":"main"}`, "Content-Type", jsonHeader, "Idempotency-Key", "push-1 "+method)
		id, _ := first.value["id"].(string)
		if first.status != 201 || first.header.Get("Location") != "/v1/runs/"+id {
			t.Fatalf("%s: %d %s", method, first.status, first.text)
		}
		again := f.rest(t, method, "/v1/workflows/hook/trigger", `{"branch":"main"}`, "Content-Type", jsonHeader, "Idempotency-Key", "push-1 "+method)
		if again.status != 200 || again.value["id"] != id || again.value["existed"] != true {
			t.Errorf("%s with the same key: %d %s", method, again.status, again.text)
		}
		if run := f.rest(t, "GET", "/v1/runs/"+id, ""); fmt.Sprint(run.value["input"]) != "map[branch:main depth:1]" {
			t.Errorf("the input is %v", run.value["input"])
		}
		if other := f.rest(t, method, "/v1/workflows/hook/trigger", `{"branch":"dev"}`, "Content-Type", jsonHeader, "Idempotency-Key", "push-1 "+method); other.status != 409 {
			t.Errorf("%s of another input with the same key: %d %s", method, other.status, other.text)
		}
	}
	run := f.rest(t, "POST", "/v1/workflows/hook/runs", `{"input":{"branch":"x"},"batch":"night","options":{"heartbeatTimeout":"30s"}}`, "Content-Type", jsonHeader)
	if run.status != 201 {
		t.Errorf("runs: %d %s", run.status, run.text)
	}
	for name, c := range map[string]struct {
		path, body string
		headers    []string
		status     int
		message    string
	}{
		"no input":     {"/v1/workflows/hook/trigger", "", nil, 400, "branch"},
		"wrong type":   {"/v1/workflows/hook/trigger", `{"branch":"x","depth":"deep"}`, nil, 400, "depth"},
		"unknown":      {"/v1/workflows/hook/trigger", `{"branch":"x","dept":1}`, nil, 400, "depth"},
		"no object":    {"/v1/workflows/hook/trigger", `[1]`, nil, 400, ""},
		"two keys":     {"/v1/workflows/hook/runs", `{"input":{"branch":"x"},"idempotencyKey":"a"}`, []string{"Idempotency-Key", "b"}, 400, "differ"},
		"an empty key": {"/v1/workflows/hook/trigger", `{"branch":"x"}`, []string{"Idempotency-Key", ""}, 400, "1 to 255"},
		"a long key":   {"/v1/workflows/hook/trigger", `{"branch":"x"}`, []string{"Idempotency-Key", strings.Repeat("k", 256)}, 400, "1 to 255"},
		"no workflow":  {"/v1/workflows/hok/trigger", `{}`, nil, 404, "did you mean hook?"},
	} {
		if got := f.rest(t, "POST", c.path, c.body, append(c.headers, "Content-Type", jsonHeader)...); got.status != c.status || !strings.Contains(got.message(), c.message) {
			t.Errorf("%s: %d %s", name, got.status, got.text)
		}
	}
}
