package gateway

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/names"
)

// secretsAs returns a client of SecretService with a token.
func (f *fixture) secretsAs(t *testing.T, token string) switchyardv1connect.SecretServiceClient {
	t.Helper()
	return switchyardv1connect.NewSecretServiceClient(f.httpClient(t), f.server.URL(), connect.WithInterceptors(bearer(token)))
}

// startAttempt makes a run schedule an attempt on a node, and returns the token with which the node completes
// it.
func startAttempt(t *testing.T, run, node, task string, claim int32) []byte {
	t.Helper()
	queue := names.NodeQueue(node, names.CPULane)
	signal(t, run, executeSignal, &v1.ClaimRef{Task: task, Claim: claim, Outcome: queue})
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	polled, err := temporalClient.WorkflowService().PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{
		Namespace: "default", TaskQueue: &taskqueuepb.TaskQueue{Name: queue},
	})
	if err != nil || len(polled.GetTaskToken()) == 0 {
		t.Fatal(polled, err)
	}
	return polled.GetTaskToken()
}

const secretDocument = `name: with-secrets
tasks:
  build: { type: shell, secretEnv: { TOKEN: "store:deploy" }, spec: { command: 'true' } }
  other: { type: shell, secretEnv: { PATH_OF: "file:/run/deploy" }, spec: { command: 'true' } }
  each: { type: shell, parallel: 4, secretEnv: { TOKEN: "store:deploy" }, spec: { command: 'true' } }
`

// TestSecretIsReleasedToItsAttemptAlone uses two gateways with one store.
func TestSecretIsReleasedToItsAttemptAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	f, second := startLocked(t, dir), startLocked(t, dir)
	operator, _ := f.token(t, "ann", v1.RoleOperator)
	user, _ := f.token(t, "bob", v1.RoleUser)
	admin, _ := f.token(t, "root", v1.RoleAdmin)
	a, b := "release-a", "release-b" // used by no other test
	tokenA, tokenB := f.nodeToken(t, a), f.nodeToken(t, b)
	const value = "hunter2-of-the-release"
	set := func(role string) {
		t.Helper()
		if _, err := f.secretsAs(t, operator).SetSecret(t.Context(), connect.NewRequest(&v1.SetSecretRequest{Name: "deploy", Value: []byte(value), Role: role})); err != nil {
			t.Fatal(err)
		}
	}
	set("")
	submit := func(token string) (id, chain string) {
		t.Helper()
		res, err := f.dial(t, connect.WithInterceptors(bearer(token))).SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{
			Source: &v1.SubmitRunRequest_Document{Document: secretDocument},
		}))
		if err != nil {
			t.Fatal(err)
		}
		id = res.Msg.GetId()
		t.Cleanup(func() { _ = temporalClient.TerminateWorkflow(context.Background(), id, "", "the test is over") })
		desc, err := temporalClient.DescribeWorkflowExecution(t.Context(), id, "")
		if err != nil {
			t.Fatal(err)
		}
		return id, desc.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	}
	id, chain := submit(operator)
	running := startAttempt(t, id, a, "build", 3)
	startAttempt(t, id, a, "other", 4)
	startAttempt(t, id, a, "each[2]", 5)
	asked := func(change func(*v1.ReleaseSecretRequest)) *connect.Request[v1.ReleaseSecretRequest] {
		req := &v1.ReleaseSecretRequest{Run: id, Chain: chain, Task: "build", Claim: 3, Node: a, Secret: "deploy"}
		change(req)
		return connect.NewRequest(req)
	}
	as := func(*v1.ReleaseSecretRequest) {}
	for _, g := range []*fixture{f, second} {
		for what, change := range map[string]func(*v1.ReleaseSecretRequest){"task": as, "instance": func(r *v1.ReleaseSecretRequest) { r.Task, r.Claim = "each[2]", 5 }} {
			res, err := g.secretsAs(t, tokenA).ReleaseSecret(t.Context(), asked(change))
			if err != nil || string(res.Msg.GetValue()) != value || res.Msg.GetVersion() != 1 {
				t.Errorf("%s: %v, %v", what, res, err)
			}
		}
	}
	for what, test := range map[string]struct {
		token  string
		change func(*v1.ReleaseSecretRequest)
		code   connect.Code
		says   string
	}{
		"another node":                   {tokenB, as, connect.CodePermissionDenied, "node " + b},
		"another node by its name":       {tokenB, func(r *v1.ReleaseSecretRequest) { r.Node = b }, connect.CodeAborted, "is not running on node " + b},
		"an admin":                       {admin, as, connect.CodePermissionDenied, "role admin"},
		"an operator":                    {operator, as, connect.CodePermissionDenied, "role"},
		"a user":                         {user, as, connect.CodePermissionDenied, "role"},
		"another dispatch":               {tokenA, func(r *v1.ReleaseSecretRequest) { r.Claim = 2 }, connect.CodeAborted, "dispatch 2"},
		"another instance":               {tokenA, func(r *v1.ReleaseSecretRequest) { r.Task, r.Claim = "each[1]", 5 }, connect.CodeAborted, "each[1]"},
		"another chain":                  {tokenA, func(r *v1.ReleaseSecretRequest) { r.Chain = "c" }, connect.CodeAborted, "was reset"},
		"another run":                    {tokenA, func(r *v1.ReleaseSecretRequest) { r.Run = "none-00000000" }, connect.CodeAborted, "is not running"},
		"a task that does not name it":   {tokenA, func(r *v1.ReleaseSecretRequest) { r.Task, r.Claim = "other", 4 }, connect.CodePermissionDenied, "does not name store:deploy"},
		"a secret that it does not name": {tokenA, func(r *v1.ReleaseSecretRequest) { r.Secret = "deploy2" }, connect.CodePermissionDenied, "does not name store:deploy2"},
	} {
		res, err := f.secretsAs(t, test.token).ReleaseSecret(t.Context(), asked(test.change))
		if connect.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), value) {
			t.Errorf("%s: %v, %v", what, res, err)
		}
	}

	// A run of a user may not use the secret until it is opened to users.
	usersRun, usersChain := submit(user)
	startAttempt(t, usersRun, b, "build", 1)
	ofUser := connect.NewRequest(&v1.ReleaseSecretRequest{Run: usersRun, Chain: usersChain, Task: "build", Claim: 1, Node: b, Secret: "deploy"})
	if res, err := f.secretsAs(t, tokenB).ReleaseSecret(t.Context(), ofUser); connect.CodeOf(err) != connect.CodePermissionDenied || !strings.Contains(err.Error(), "--role user") {
		t.Errorf("a run of a user: %v, %v", res, err)
	}
	set(v1.RoleUser)
	if res, err := second.secretsAs(t, tokenB).ReleaseSecret(t.Context(), ofUser); err != nil || res.Msg.GetVersion() != 2 {
		t.Errorf("a run of a user whom it is open to: %v, %v", res, err)
	}

	// A gateway without the key names the flag that sets it. A request for an ended attempt is refused.
	if err := os.Rename(dir+".secrets-key", dir+".hidden"); err != nil {
		t.Fatal(err)
	}
	blind := startLocked(t, dir)
	if _, err := blind.secretsAs(t, tokenA).ReleaseSecret(t.Context(), asked(as)); connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(), "--secrets-key") {
		t.Errorf("without the key: %v", err)
	}
	if err := temporalClient.CompleteActivity(t.Context(), running, nil, nil); err != nil {
		t.Fatal(err)
	}
	if res, err := f.secretsAs(t, tokenA).ReleaseSecret(t.Context(), asked(as)); connect.CodeOf(err) != connect.CodeAborted {
		t.Errorf("an attempt that has ended: %v, %v", res, err)
	}
	if _, err := f.secretsAs(t, operator).DeleteSecret(t.Context(), connect.NewRequest(&v1.DeleteSecretRequest{Name: "deploy"})); err != nil {
		t.Fatal(err)
	}
	if _, err := f.secretsAs(t, tokenB).ReleaseSecret(t.Context(), ofUser); connect.CodeOf(err) != connect.CodeNotFound || !strings.Contains(err.Error(), `"deploy"`) {
		t.Errorf("a deleted secret: %v", err)
	}
}

func TestSecretLifecycleOverREST(t *testing.T) {
	t.Parallel()
	f := startLocked(t, filepath.Join(t.TempDir(), "store"))
	operator, _ := f.token(t, "ann", v1.RoleOperator)
	user, _ := f.token(t, "bob", v1.RoleUser)
	client := f.httpClient(t)
	for _, test := range []struct {
		token, method, path, body string
		status                    int
		says                      string
	}{
		{user, http.MethodPost, "/v1/secrets", `{"name": "deploy", "value": "aHVudGVyMg=="}`, 403, "needs the role operator"},
		{user, http.MethodGet, "/v1/secrets", "", 403, "needs the role operator"},
		{f.nodeToken(t, "a"), http.MethodGet, "/v1/secrets", "", 403, "needs the role operator"},
		{operator, http.MethodPost, "/v1/secrets", `{"name": "deploy", "value": "aHVudGVyMg=="}`, 200, `"setBy":"ann"`},
		{operator, http.MethodPut, "/v1/secrets/deploy", `{"value": "aHVudGVyMg==", "role": "user"}`, 200, `"version":2`},
		{operator, http.MethodPost, "/v1/secrets", `{"name": "a/b", "value": "aHVudGVyMg=="}`, 400, "name"},
		{operator, http.MethodPost, "/v1/secrets", `{"name": "deploy", "value": ""}`, 400, "value"},
		{operator, http.MethodPost, "/v1/secrets", `{"name": "deploy", "value": "aHVudGVyMg==", "role": "viewer"}`, 400, "role"},
		{operator, http.MethodGet, "/v1/secrets", "", 200, `"name":"deploy","role":"user"`},
		{operator, http.MethodGet, "/v1/secrets/deploy", "", 405, "takes DELETE, PUT"},
		{operator, http.MethodDelete, "/v1/secrets/deploi", "", 404, "did you mean deploy"},
		{operator, http.MethodDelete, "/v1/secrets/deploy", "", 200, `"deploy"`},
	} {
		req, err := http.NewRequestWithContext(t.Context(), test.method, f.server.URL()+test.path, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+test.token)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		said := strings.ReplaceAll(string(text), `": `, `":`)
		said = strings.ReplaceAll(said, `, "`, `,"`)
		if err != nil || res.StatusCode != test.status || !strings.Contains(said, test.says) || strings.Contains(said, "aHVudGVyMg") || strings.Contains(said, "hunter2") {
			t.Errorf("%s %s: %d %s", test.method, test.path, res.StatusCode, text)
		}
	}
}
