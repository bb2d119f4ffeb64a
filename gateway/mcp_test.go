package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/dev/testneeds"
	"switchyard/gateway/mcp"
	v1 "switchyard/proto/switchyard/v1"
)

// agent connects a client of the Model Context Protocol to a path.
func (f *fixture) agent(t *testing.T, path, token string) *sdk.ClientSession {
	t.Helper()
	transport := &http.Transport{}
	session, err := f.connectAgent(t.Context(), path, token, transport)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		transport.CloseIdleConnections()
	})
	return session
}

func (f *fixture) connectAgent(ctx context.Context, path, token string, transport *http.Transport) (*sdk.ClientSession, error) {
	return sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: f.server.URL() + path, HTTPClient: &http.Client{Transport: tokenTransport{transport, token}}, DisableStandaloneSSE: true,
	}, nil)
}

// callTool calls a tool and returns its result or the text of its error.
func callTool(t *testing.T, session *sdk.ClientSession, name string, arguments map[string]any) (answer map[string]any, failure string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	res, err := session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: an error of the protocol: %v", name, err)
	}
	text := res.Content[0].(*sdk.TextContent).Text
	if res.IsError {
		return nil, text
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	return answer, ""
}

// TestAgentsUseToolsOverHTTP drives runs with tools.
func TestAgentsUseToolsOverHTTP(t *testing.T) {
	t.Parallel()
	f := start(t)
	session := f.agent(t, mcp.Path, "")
	submitted, failure := callTool(t, session, "submit_workflow", map[string]any{"definition": document("by-agent", "build", "test"), "idempotencyKey": "by-agent-1"})
	if failure != "" {
		t.Fatal(failure)
	}
	run := submitted["run"].(string)
	again, _ := callTool(t, session, "submit_workflow", map[string]any{"definition": document("by-agent", "build", "test"), "idempotencyKey": "by-agent-1"})
	if again["run"] != run || again["existed"] != true {
		t.Errorf("a repeated call: %v, want the run %s", again, run)
	}
	status, failure := callTool(t, session, "get_workflow_status", map[string]any{"run": run})
	if tasks, _ := status["tasks"].([]any); failure != "" || len(tasks) != 2 || status["workflow"] != "by-agent" {
		t.Errorf("%v %s", status, failure)
	}
	end(t, run, v1.RunCompleted)
	waited, failure := callTool(t, session, "get_workflow_status", map[string]any{"run": run, "waitSeconds": 50})
	if failure != "" || waited["state"] != v1.RunCompleted {
		t.Errorf("%v %s", waited, failure)
	}
}

// TestAgentsAreHeldToRoles checks that tools are limited to what their caller may see and do, and that only allowed tools
// are offered.
func TestAgentsAreHeldToRoles(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	if _, err := f.connectAgent(t.Context(), mcp.Path, "", &http.Transport{DisableKeepAlives: true}); err == nil {
		t.Error("a client without a token is served")
	}
	ann, _ := f.token(t, "agent-ann", v1.RoleUser)
	bob, _ := f.token(t, "agent-bob", v1.RoleUser)
	viewer, _ := f.token(t, "agent-ann", v1.RoleViewer)
	sessions := map[string]*sdk.ClientSession{"ann": f.agent(t, mcp.Path, ann), "bob": f.agent(t, mcp.Path, bob), "viewer": f.agent(t, mcp.Path, viewer), "reading": f.agent(t, mcp.ReadOnlyPath, ann)}
	submitted, failure := callTool(t, sessions["ann"], "submit_workflow", map[string]any{"definition": document("by-ann", "build")})
	if failure != "" {
		t.Fatal(failure)
	}
	run := submitted["run"].(string)
	eventually(t, "the list of its owner has the run", func() bool {
		listed, failure := callTool(t, sessions["ann"], "list_workflows", map[string]any{"workflow": "by-ann"})
		items, _ := listed["items"].([]any)
		return failure == "" && len(items) > 0 && items[0].(map[string]any)["run"] == run && items[0].(map[string]any)["submittedBy"] == "agent-ann"
	})
	_, unknown := callTool(t, sessions["bob"], "get_workflow_status", map[string]any{"run": "no-such-run"})
	want := strings.ReplaceAll(strings.SplitN(unknown, "\n", 2)[0], "no-such-run", run)
	for _, tool := range []string{"get_workflow_status", "cancel_workflow"} {
		if _, failure := callTool(t, sessions["bob"], tool, map[string]any{"run": run}); !strings.Contains(failure, want) {
			t.Errorf("%s of another user's run: %q, want it as that of none: %q", tool, failure, want)
		}
	}
	if listed, _ := callTool(t, sessions["bob"], "list_workflows", map[string]any{"workflow": "by-ann"}); listed["items"] != nil {
		t.Errorf("another user's runs are listed: %v", listed)
	}
	if _, failure := callTool(t, sessions["ann"], "drain_node_tasks", map[string]any{"node": "n1"}); !strings.Contains(failure, "permission_denied") || !strings.Contains(failure, "operator") {
		t.Errorf("a user drains a node: %s", failure)
	}
	for _, name := range []string{"viewer", "reading"} {
		if _, failure := callTool(t, sessions[name], "cancel_workflow", map[string]any{"run": run}); !strings.Contains(failure, "read-only") {
			t.Errorf("%s cancels: %s", name, failure)
		}
		if status, failure := callTool(t, sessions[name], "get_workflow_status", map[string]any{"run": run}); status["run"] != run {
			t.Errorf("%s reads: %v %s", name, status, failure)
		}
	}
	if _, failure := callTool(t, sessions["ann"], "cancel_workflow", map[string]any{"run": run, "reason": "enough"}); failure != "" {
		t.Errorf("its owner cannot cancel a run: %s", failure)
	}
	waitClosed(t, run)
}

// TestAgentsLeakNothing checks that no call stays open after its agent has disconnected.
func TestAgentsLeakNothing(t *testing.T) {
	t.Parallel()
	visitByAgents(t, 20, 1)
}

// TestLongAgentsLeakNothing compares the memory of the gateway before and after many agents.
func TestLongAgentsLeakNothing(t *testing.T) {
	testneeds.Long(t)
	visitByAgents(t, 100, 6)
}

// visitByAgents lets concurrent agents make calls, from some of which they disconnect midway, in one round and some more.
func visitByAgents(t *testing.T, agents, rounds int) {
	t.Helper()
	f := start(t)
	run := f.submit(t, "watched-by-agents")
	round := func() {
		var wg sync.WaitGroup
		for n := range agents {
			wg.Go(func() {
				transport := &http.Transport{DisableKeepAlives: true}
				session, err := f.connectAgent(t.Context(), mcp.Path, "", transport)
				if err != nil {
					t.Error(err)
					return
				}
				defer session.Close()
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				if n%4 == 0 { // disconnects while the tool waits
					time.AfterFunc(50*time.Millisecond, cancel)
					_, _ = session.CallTool(ctx, &sdk.CallToolParams{Name: "get_workflow_status", Arguments: map[string]any{"run": run, "waitSeconds": 50}})
					return
				}
				res, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "get_workflow_status", Arguments: map[string]any{"run": run}})
				switch {
				case err != nil:
					t.Error(err)
				case res.IsError:
					t.Error(res.Content[0].(*sdk.TextContent).Text)
				}
			})
		}
		wg.Wait()
		eventually(t, "no call is open", func() bool { return f.bounds.OpenCalls() == 0 && f.bounds.OpenStreams() == 0 })
	}
	round()
	before := heap()
	for range rounds {
		round()
	}
	// Other tests in this process use memory temporarily; leaked sessions would hold it forever.
	eventually(t, "the heap is at most 60 MiB larger", func() bool { return heap() <= before+60<<20 })
	end(t, run, v1.RunCompleted)
}
