package e2e

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"switchyard/dev/processes"
	"switchyard/gateway/openapi/openapitest"
)

// TestAnswersAreAsDocumented requests every GET path of the OpenAPI document, and compares each response with its schema.
func TestAnswersAreAsDocumented(t *testing.T) {
	t.Parallel()
	s := shared(t)
	const definition = `
name: documented
inputs: { who: { type: string, default: you } }
schedule: { cron: "0 2 * * *", timezone: Europe/Berlin }
tasks:
  list: { type: shell, spec: { command: "echo one; echo two >&2; echo file > f" }, artifacts: { out: [{ name: documented, path: f }] } }
  greet: { type: shell, parallel: 2, retry: { maxRetries: 1 }, dependsOn: [list], spec: { command: "echo ${{ workflow.input.who }}" } }
  fail: { type: shell, retry: { maxRetries: 1, backoffMs: 1 }, spec: { command: exit 3 } }
`
	do(t, s.Gateway, 0, "workflows", "put", write(t, definition))
	id := s.Submit(t, definition)
	s.End(t, id)
	// No node has the label, so this machine waits and needs no image.
	machine := s.Submit(t, "name: machine\ntasks: { vps: { type: vps, constraints: { nodeLabels: [never] }, spec: { image: never:1 } } }\n")
	document, err := openapitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, operation := range document.Operations() {
		if operation.Method != http.MethodGet {
			continue
		}
		name := "documented"
		if strings.HasPrefix(operation.Path, "/v1/nodes") {
			name = "local-1"
		}
		id := id
		if strings.HasPrefix(operation.Path, "/v1/vps") {
			id = machine
		}
		task := "greet"
		if strings.Contains(operation.Path, "/artifacts/") {
			task = "list"
		}
		path := strings.NewReplacer("{id}", id, "{run}", id, "{task}", task, "{name}", url.PathEscape(name)).Replace(operation.Path)
		for _, query := range []string{"", "?pageSize=1"} {
			if query != "" && !operation.HasParameter("pageSize") {
				continue
			}
			response, err := http.Get(s.Gateway + path + query)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			want := http.StatusOK
			if operation.Path == "/v1/tokens" {
				want = http.StatusConflict // this gateway requires no token
			}
			if operation.Path == "/v1/environments/{name}" || operation.Path == "/v1/notifications/{name}" {
				want = http.StatusNotFound
			}
			if err != nil || response.StatusCode != want {
				t.Errorf("GET %s%s: %s %v\n%s", path, query, response.Status, err, body)
				continue
			}
			if err := operation.CheckAnswer(response.StatusCode, response.Header, body); err != nil {
				t.Errorf("GET %s%s: %v\n%s", path, query, err, processes.Tail(string(body)))
			}
			checked++
		}
	}
	if checked < 15 {
		t.Errorf("only %d answers were compared", checked)
	}
}
