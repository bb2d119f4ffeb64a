package gateway

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"switchyard/activities/gatewayclient"
	"switchyard/activities/grants"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// openAs opens the gateway as a store with a token.
func (f *fixture) openAs(t *testing.T, token string) *store.Store {
	t.Helper()
	s, err := store.OpenWith(t.Context(), f.server.URL(), store.Options{Gateway: gatewayclient.Options{Token: func() string { return token }}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestNodeTokenOpensWhatItsNodeWasGiven(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	a, b := f.openAs(t, f.nodeToken(t, "a")), f.openAs(t, f.nodeToken(t, "b"))
	given := grants.New(f.config.Store)
	for _, one := range []grants.Grant{
		{Node: "a", Run: "ci-0k", Chain: "c1", Task: "build"}, {Node: "a", Run: "ci-0k", Chain: "c1", Task: "each"}, {Node: "b", Run: "ci-1k", Chain: "c1", Task: "build"},
	} {
		if err := given.Put(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	parent := storekey.Result("ci-0k/c1", 0, "parent", 0)
	if err := f.config.Store.Put(t.Context(), parent, []byte("output of a parent")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		storekey.Checkpoint("ci-0k/c1", 0, "build", 1), storekey.Result("ci-0k/c1", 1, "build", 2), storekey.Checkpoint("ci-0k/c1", 0, "each[12]", 1),
		storekey.Batch("ci-0k/c1", 0, "each[0-9]", 0, 1),
	} {
		if err := a.Put(t.Context(), key, nil); err != nil {
			t.Errorf("node a stores %s: %v", key, err)
		}
		if _, err := a.Get(t.Context(), key); err != nil {
			t.Errorf("node a reads %s: %v", key, err)
		}
		if err := b.Put(t.Context(), key, nil); connect.CodeOf(err) != connect.CodePermissionDenied || !strings.Contains(err.Error(), "node b") {
			t.Errorf("node b stores %s: %v", key, err)
		}
		if _, err := b.Get(t.Context(), key); connect.CodeOf(err) != connect.CodePermissionDenied || !strings.Contains(err.Error(), "node b") {
			t.Errorf("node b reads %s: %v", key, err)
		}
	}
	if value, err := a.Get(t.Context(), parent); err != nil || string(value) != "output of a parent" {
		t.Errorf("node a reads what a parent has left: %q, %v", value, err)
	}
	for _, key := range []string{parent, storekey.Checkpoint("ci-0k/c2", 0, "build", 1), storekey.Checkpoint("ci-1k/c1", 0, "build", 1), storekey.Checkpoint("ci-2k/c1", 0, "build", 1)} {
		if err := a.Put(t.Context(), key, nil); connect.CodeOf(err) != connect.CodePermissionDenied {
			t.Errorf("node a stores %s: %v", key, err)
		}
	}
	if _, err := a.Identity(t.Context()); err != nil {
		t.Errorf("the identity: %v", err)
	}
	if err := b.Probe(t.Context(), store.ProbeRun); err != nil {
		t.Errorf("node b finds out that the store answers: %v", err)
	}
	if err := b.Probe(t.Context(), "ci-0k"); err == nil {
		t.Error("node b writes the probe of a run")
	}
	var listed []string
	for key, err := range a.Keys(t.Context(), storekey.RunPrefix("ci-0k")) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, key)
	}
	if !slices.Contains(listed, parent) || slices.ContainsFunc(listed, storekey.IsGrant) {
		t.Errorf("listed %v", listed)
	}
	for _, prefix := range []string{"runs/ci-0k/grants/", "runs/ci-0k/grants/a/", "runs/ci-1k/", "runs/ci-2k/x"} {
		for _, err := range a.Keys(t.Context(), prefix) {
			if connect.CodeOf(err) != connect.CodePermissionDenied {
				t.Errorf("node a lists %s: %v", prefix, err)
			}
		}
	}
}

// TestNodeTokenAllowsNothingElse uses the token of a node for the calls of users, and the tokens of users for the
// store.
func TestNodeTokenAllowsNothingElse(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	option := connect.WithInterceptors(bearer(f.nodeToken(t, "a")))
	f.client = f.dial(t, option)
	for what, err := range map[string]error{
		"submit": func() error {
			_, err := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: document("stolen", "t")}}))
			return err
		}(),
		"list": func() error {
			_, err := f.dial(t, option, connect.WithGRPC()).ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{}))
			return err
		}(),
		"get": func() error {
			_, err := f.client.GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: "ci-0k"}))
			return err
		}(),
		"tokens": func() error {
			_, err := switchyardv1connect.NewAuthServiceClient(f.httpClient(t), f.server.URL(), option).CreateToken(t.Context(), connect.NewRequest(&v1.CreateTokenRequest{Name: "eve", Role: v1.RoleAdmin}))
			return err
		}(),
		"secrets": func() error {
			_, err := switchyardv1connect.NewSecretServiceClient(f.httpClient(t), f.server.URL(), option).ListSecrets(t.Context(), connect.NewRequest(&v1.ListSecretsRequest{}))
			return err
		}(),
	} {
		if connect.CodeOf(err) != connect.CodePermissionDenied {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, role := range []string{v1.RoleViewer, v1.RoleUser, v1.RoleOperator, v1.RoleAdmin} {
		secret, _ := f.token(t, "ann", role)
		s := f.openAs(t, secret)
		key := storekey.Checkpoint("ci-0k/c1", 0, "build", 1)
		_, read := s.Get(t.Context(), key)
		_, identity := s.Identity(t.Context())
		for what, err := range map[string]error{"read": read, "write": s.Put(t.Context(), key, nil), "identity": identity} {
			if connect.CodeOf(err) != connect.CodePermissionDenied {
				t.Errorf("%s with the role %s: %v", what, role, err)
			}
		}
	}
	s := f.openAs(t, "")
	if _, err := s.Identity(t.Context()); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("without a token: %v", err)
	}
}

// TestNodeWithRunningAttemptNeedsNoGrant covers attempts that started before the deployment required tokens.
func TestNodeWithRunningAttemptNeedsNoGrant(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	operator, _ := f.token(t, "ann", v1.RoleOperator)
	f.client = f.dial(t, connect.WithInterceptors(bearer(operator)))
	id := f.submit(t, "ungranted")
	desc, err := temporalClient.DescribeWorkflowExecution(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	home := id + "/" + desc.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	node, other := "ungranted-a", "ungranted-b"
	a, b := f.openAs(t, f.nodeToken(t, node)), f.openAs(t, f.nodeToken(t, other))
	key := storekey.Checkpoint(home, 0, "build", 1)
	running := startAttempt(t, id, node, "build", 1)
	if _, err := a.Get(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("node a reads: %v", err)
	}
	if err := a.Put(t.Context(), key, nil); err != nil {
		t.Errorf("node a stores: %v", err)
	}
	for what, err := range map[string]error{
		"another node":  b.Put(t.Context(), key, nil),
		"another task":  a.Put(t.Context(), storekey.Checkpoint(home, 0, "test", 1), nil),
		"another chain": a.Put(t.Context(), storekey.Checkpoint(id+"/c2", 0, "build", 1), nil),
	} {
		if connect.CodeOf(err) != connect.CodePermissionDenied {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Access once granted stays: results may be delivered after the attempt has ended.
	if err := temporalClient.CompleteActivity(t.Context(), running, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Put(t.Context(), storekey.Result(home, 0, "build", 0), nil); err != nil {
		t.Errorf("node a stores the result: %v", err)
	}
}
