package e2e

import (
	"encoding/json"
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
  list: { type: shell, spec: { command: "echo one; echo two >&2" } }
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
		path := strings.NewReplacer("{id}", id, "{run}", id, "{task}", "greet", "{name}", url.PathEscape(name)).Replace(operation.Path)
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
			if operation.Path == "/v1/environments/{name}" {
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

// TestNodeReportsItsClaims compares the claims that a node reports with a task that it runs and has run.
func TestNodeReportsItsClaims(t *testing.T) {
	t.Parallel()
	s := shared(t)
	type figures struct {
		TotalClaimedTasks, TotalClaimAttempts int
		ClaimedByStatus                       map[string]int
		ObservedAt, LastActivityAt            string
		ActiveClaims                          []struct{ RunID, TaskID, Status, ClaimExpiresAt string }
	}
	read := func(node string) (f figures) {
		if err := json.Unmarshal([]byte(processes.Fetch(t, s.Gateway+"/v1/nodes/"+node+"/workers")), &f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	id := s.Submit(t, `
name: claimed
tasks: { wait: { type: shell, constraints: { targetNode: local-1 }, resources: { cores: 0 }, spec: { command: sleep 600 } } }
`)
	var during figures
	claimed := func() bool {
		during = read("local-1")
		for _, claim := range during.ActiveClaims {
			if claim.RunID == id && claim.TaskID == "wait" && claim.Status == "running" && claim.ClaimExpiresAt != "" {
				return true
			}
		}
		return false
	}
	processes.Await(t, "the node names the claim", claimed)
	do(t, s.Gateway, 0, "runs", "cancel", id)
	before := during
	processes.Await(t, "the claim has ended", func() bool {
		return !claimed() && during.ClaimedByStatus["cancelled"] > before.ClaimedByStatus["cancelled"] && during.LastActivityAt > before.LastActivityAt
	})
	if during.TotalClaimedTasks == 0 || during.TotalClaimAttempts < during.TotalClaimedTasks {
		t.Errorf("the node has claimed %+v", during)
	}
	if nothing := read("never-was"); nothing.TotalClaimedTasks != 0 || nothing.ObservedAt != "" {
		t.Errorf("a node that never was has claimed %+v", nothing)
	}
}
