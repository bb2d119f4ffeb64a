package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"switchyard/dev/testneeds"
	"switchyard/gateway/openapi/openapitest"
)

// TestForeignClientsDriveRuns takes runs through their lives with curl and grpcurl, runs the commands in the documents
// about REST, and checks every response to a GET against the OpenAPI document.
func TestForeignClientsDriveRuns(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	t.Run("curl", func(t *testing.T) {
		out, err := outputOf(t, tool(t, "bash"), filepath.Join("testdata", "curl.sh"), s.gateway)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
	t.Run("grpcurl", func(t *testing.T) {
		out, err := outputOf(t, tool(t, "bash"), filepath.Join("testdata", "grpcurl.sh"), tool(t, "grpcurl"), strings.TrimPrefix(s.gateway, "http://"))
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
	t.Run("documents", func(t *testing.T) {
		for document, head := range map[string]string{"README.md": "\n## REST\n", "gateway/rest/README.md": "# The HTTP API\n"} {
			text, err := os.ReadFile(filepath.Join(repository, document))
			if err != nil {
				t.Fatal(err)
			}
			block := regexp.MustCompile("(?s)" + head + ".*?```sh\n(.*?)```").FindSubmatch(text)
			if block == nil {
				t.Fatalf("%s has no commands after %q", document, head)
			}
			// The script ends at the first 4xx or 5xx status.
			script := "set -e\ncd " + repository + "\nSWITCHYARD_GATEWAY=" + s.gateway + "\n" +
				"curl() { command curl -sS --fail-with-body --max-time 300 \"$@\"; }\n" +
				strings.ReplaceAll(string(block[1]), "http://127.0.0.1:7280", s.gateway)
			if out, err := outputOf(t, tool(t, "bash"), "-c", script); err != nil {
				t.Errorf("%s: %v\n%s", document, err, tail(out))
			}
		}
	})
	t.Run("answers", func(t *testing.T) { s.checkAnswers(t) })
	t.Run("claims", func(t *testing.T) { s.checkClaims(t) })
}

// checkClaims compares the claims that a node reports with the tasks that it runs and has run.
func (s *devStack) checkClaims(t *testing.T) {
	type figures struct {
		TotalClaimedTasks, TotalClaimAttempts int
		ClaimedByStatus                       map[string]int
		RunningClaims                         int
		ObservedAt, LastActivityAt            string
		ActiveClaims                          []struct{ RunID, TaskID, Status, ClaimExpiresAt string }
	}
	path := s.gateway + "/v1/nodes/" + s.node(t) + "/workers"
	read := func() (f figures) {
		if err := json.Unmarshal(fetch(t, http.MethodGet, path, ""), &f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	before := read()
	id := s.submit(t, write(t, "name: claimed\ntasks:\n  wait: { type: shell, spec: { command: sleep 600 } }\n"))
	eventually(t, "the node names the claim", func() bool {
		for _, claim := range read().ActiveClaims {
			if claim.RunID == id && claim.TaskID == "wait" && claim.Status == "running" && claim.ClaimExpiresAt != "" {
				return true
			}
		}
		return false
	})
	run(t, "runs", "cancel", id, "--gateway", s.gateway)
	eventually(t, "the claim has ended", func() bool {
		after := read()
		return after.RunningClaims == 0 && after.ClaimedByStatus["cancelled"] > 0 && after.TotalClaimedTasks > before.TotalClaimedTasks &&
			after.TotalClaimAttempts > before.TotalClaimAttempts && after.LastActivityAt > before.LastActivityAt
	})
	var nothing figures
	if err := json.Unmarshal(fetch(t, http.MethodGet, s.gateway+"/v1/nodes/never-was/workers", ""), &nothing); err != nil || nothing.TotalClaimedTasks != 0 || nothing.ObservedAt != "" {
		t.Errorf("a node that never was has claimed %+v, %v", nothing, err)
	}
}

// isAccepted posts a document and reports whether it was accepted.
func isAccepted(t *testing.T, url, body string) bool {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode < 300
}

// checkAnswers requests every GET path of the document, and compares each response with its schema.
func (s *devStack) checkAnswers(t *testing.T) {
	kept := `name: kept
inputs: { who: { type: string, default: you } }
schedule: { cron: "0 2 * * *", timezone: Europe/Berlin }
tasks:
  list: { type: shell, spec: { command: "echo one; echo two >&2" } }
  greet: { type: shell, parallel: 2, retry: { maxRetries: 1 }, dependsOn: [list], spec: { command: "echo ${{ workflow.input.who }}" } }
  fail: { type: shell, retry: { maxRetries: 1, backoffMs: 1 }, spec: { command: exit 3 } }
`
	definition := write(t, kept)
	if code, _, stderr := run(t, "workflows", "put", definition, "--gateway", s.gateway); code != 0 {
		t.Fatalf("workflows put exits with %d: %s", code, stderr)
	}
	id := s.submit(t, definition)
	run(t, "runs", "watch", id, "--gateway", s.gateway)
	// No node has the label, so this machine waits and needs no image.
	machine := s.submit(t, write(t, "name: machine\ntasks:\n  vps: { type: vps, constraints: { nodeLabels: [never] }, spec: { image: never:1 } }\n"))
	// No node without an engine can create the environment, so it does not exist. With an engine, it stays listed for a
	// day after its failure.
	hasEnvironment := isAccepted(t, s.gateway+"/v1/environments", `{"name": "kept", "image": "switchyard-test/never-was:1"}`)
	document, err := openapitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, operation := range document.Operations() {
		if operation.Method != http.MethodGet {
			continue
		}
		name := "kept"
		if strings.HasPrefix(operation.Path, "/v1/nodes") {
			name = s.node(t)
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
			response, err := http.Get(s.gateway + path + query)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			want := http.StatusOK
			if operation.Path == "/v1/tokens" {
				want = http.StatusConflict // this gateway requires no token
			}
			if operation.Path == "/v1/environments/{name}" && !hasEnvironment {
				want = http.StatusNotFound
			}
			if err != nil || response.StatusCode != want {
				t.Errorf("GET %s%s: %s %v\n%s", path, query, response.Status, err, body)
				continue
			}
			if err := operation.CheckAnswer(response.StatusCode, response.Header, body); err != nil {
				t.Errorf("GET %s%s: %v\n%s", path, query, err, tail(string(body)))
			}
			checked++
		}
	}
	if checked < 15 {
		t.Errorf("only %d answers were compared", checked)
	}
}

// node returns the name of a node.
func (s *devStack) node(t *testing.T) string {
	t.Helper()
	var answer struct {
		Items []struct{ Name string }
	}
	eventually(t, "a node is listed", func() bool {
		if err := json.Unmarshal(fetch(t, http.MethodGet, s.gateway+"/v1/nodes", ""), &answer); err != nil {
			t.Fatal(err)
		}
		return len(answer.Items) > 0
	})
	return answer.Items[0].Name
}

// TestLongGeneratedClientDrivesRuns generates a client from the OpenAPI document with openapi-typescript, type-checks a
// program that uses it with the TypeScript compiler, and runs that program.
func TestLongGeneratedClientDrivesRuns(t *testing.T) {
	testneeds.Long(t)
	npm := tool(t, "npm")
	s := startDev(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "client"))); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{
		{npm, "--prefix", dir, "install", "--no-audit", "--no-fund", "--no-package-lock"},
		{npm, "--prefix", dir, "exec", "--", "openapi-typescript", s.gateway + "/openapi.json", "-o", filepath.Join(dir, "schema.d.ts")},
		{npm, "--prefix", dir, "exec", "--", "tsc", "-p", dir},
		{tool(t, "node"), filepath.Join(dir, "client.js"), s.gateway},
	} {
		out, err := outputOf(t, command[0], command[1:]...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
		}
	}
}
