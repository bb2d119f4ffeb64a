package gateway

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/names"
)

// startAttempt makes a run schedule an attempt on a node, and returns the token with which the node completes
// it.
func startAttempt(t *testing.T, run, node, task string, claim int32) []byte {
	t.Helper()
	queue := names.NodeQueue(node, names.CPULane)
	signal(t, run, executeSignal, &historyv1.ClaimRef{Task: task, Claim: claim, Outcome: queue})
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
	secrets := func(f *fixture, token string) switchyardv1connect.SecretServiceClient {
		return dialService(t, f, switchyardv1connect.NewSecretServiceClient, token)
	}
	set := func(role string) {
		t.Helper()
		do(t, secrets(f, operator).SetSecret, &v1.SetSecretRequest{Name: "deploy", Value: []byte(value), Role: role})
	}
	set("")
	submit := func(token string) (id, chain string) {
		t.Helper()
		f.client = f.dialAs(t, token)
		id = f.submitDocument(t, secretDocument)
		return id, f.describe(t, id).GetWorkflowExecutionInfo().GetExecution().GetRunId()
	}
	id, chain := submit(operator)
	running := startAttempt(t, id, a, "build", 3)
	startAttempt(t, id, a, "other", 4)
	startAttempt(t, id, a, "each[2]", 5)
	asked := func(change func(*v1.ReleaseSecretRequest)) *v1.ReleaseSecretRequest {
		req := &v1.ReleaseSecretRequest{Run: id, Chain: chain, Task: "build", Claim: 3, Node: a, Secret: "deploy"}
		change(req)
		return req
	}
	as := func(*v1.ReleaseSecretRequest) {}
	for _, g := range []*fixture{f, second} {
		for what, change := range map[string]func(*v1.ReleaseSecretRequest){"task": as, "instance": func(r *v1.ReleaseSecretRequest) { r.Task, r.Claim = "each[2]", 5 }} {
			if res := do(t, secrets(g, tokenA).ReleaseSecret, asked(change)); string(res.GetValue()) != value || res.GetVersion() != 1 {
				t.Errorf("%s: %v", what, res)
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
		if err := refused(t, what, secrets(f, test.token).ReleaseSecret, asked(test.change), test.code, test.says); err != nil && strings.Contains(err.Error(), value) {
			t.Errorf("%s: %v", what, err)
		}
	}

	// A run of a user may not use the secret until it is opened to users.
	usersRun, usersChain := submit(user)
	startAttempt(t, usersRun, b, "build", 1)
	ofUser := &v1.ReleaseSecretRequest{Run: usersRun, Chain: usersChain, Task: "build", Claim: 1, Node: b, Secret: "deploy"}
	refused(t, "a run of a user", secrets(f, tokenB).ReleaseSecret, ofUser, connect.CodePermissionDenied, "--role user")
	set(v1.RoleUser)
	if res := do(t, secrets(second, tokenB).ReleaseSecret, ofUser); res.GetVersion() != 2 {
		t.Errorf("a run of a user whom it is open to: %v", res)
	}

	// A gateway without the key names the flag that sets it. A request for an ended attempt is refused.
	if err := os.Rename(dir+".secrets-key", dir+".hidden"); err != nil {
		t.Fatal(err)
	}
	refused(t, "without the key", secrets(startLocked(t, dir), tokenA).ReleaseSecret, asked(as), connect.CodeFailedPrecondition, "--secrets-key")
	if err := temporalClient.CompleteActivity(t.Context(), running, nil, nil); err != nil {
		t.Fatal(err)
	}
	refused(t, "an attempt that has ended", secrets(f, tokenA).ReleaseSecret, asked(as), connect.CodeAborted)
	do(t, secrets(f, operator).DeleteSecret, &v1.DeleteSecretRequest{Name: "deploy"})
	refused(t, "a deleted secret", secrets(f, tokenB).ReleaseSecret, ofUser, connect.CodeNotFound, `"deploy"`)
}
