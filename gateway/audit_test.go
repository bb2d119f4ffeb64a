package gateway

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/activities/gatewayclient"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/names"
)

// openAs opens the gateway as a store with a token.
func (f *fixture) openAs(t *testing.T, token string) *store.Store {
	t.Helper()
	s, err := store.OpenWith(t.Context(), f.server.URL(), store.Options{Gateways: dialGateway(t, f.server.URL(), token)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// dialGateway returns the connection of a node to a gateway, with a token.
func dialGateway(t *testing.T, url, token string) *gatewayclient.Conn {
	t.Helper()
	list, err := gatewayclient.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	conn := gatewayclient.New(list, gatewayclient.Options{Token: func() string { return token }, Identify: store.GatewayIdentity})
	t.Cleanup(conn.Close)
	return conn
}

// auditEntries returns the entries that match a request once there are any. A gateway stores the entry of a call before it
// answers, unless its store takes too long.
func (f *fixture) auditEntries(t *testing.T, token string, req *v1.ListAuditEntriesRequest) (found []*v1.AuditEntry) {
	t.Helper()
	client := dialService(t, f, switchyardv1connect.NewAuditServiceClient, token)
	eventually(t, "the audit has an entry", func() bool {
		found = answer(t, client.ListAuditEntries, req).GetItems()
		return len(found) > 0
	})
	return found
}

// TestAuditHasEveryWriteAndEveryRefusal sends each call to a gateway, from callers who may make it and from
// callers who may not.
func TestAuditHasEveryWriteAndEveryRefusal(t *testing.T) {
	t.Parallel()
	// Each entry has its own second, so that none is dropped as part of a flood.
	var seconds atomic.Int64
	began := time.Now()
	f := startLocked(t, t.TempDir(), func(c *Config) {
		c.Now = func() time.Time { return began.Add(time.Duration(seconds.Add(1)) * time.Second) }
	})
	tokens := map[string]string{"worker-gpu-1": f.nodeToken(t, "gpu-1")}
	tokens["root"], _ = f.token(t, "root", v1.RoleAdmin)
	tokens["vera"], _ = f.token(t, "vera", v1.RoleViewer)
	client := f.httpClient(t, "")
	want := map[string]string{}
	each(func(call protoreflect.MethodDescriptor) {
		send := func(who, result string) {
			knocksOf(call, "none-00000000")[0].send(t, client, f.server.URL(), tokens[who])
			want[who+" "+string(call.Parent().Name())+"/"+string(call.Name())] = result
		}
		rules := v1.RulesOf(call)
		if rules.GetEffect() == v1.Effect_EFFECT_WRITE && !rules.GetUnaudited() {
			send("root", "failed or ok")
		}
		if !rules.GetNode() {
			send("worker-gpu-1", "permission_denied")
		}
		if !v1.Role_ROLE_VIEWER.Includes(rules.GetRole()) {
			send("vera", "permission_denied")
		}
	})
	f.recorder.Close() // flushes refusals, which are written asynchronously
	for _, e := range f.auditEntries(t, tokens["root"], &v1.ListAuditEntriesRequest{PageSize: 1000}) {
		key := e.GetBy() + " " + e.GetAction()
		wanted, ok := want[key]
		if !ok || wanted == "permission_denied" && e.GetResult() != wanted || e.GetFrom() != "127.0.0.1" || e.GetKind() != auth.KindToken || e.GetToken() == "" {
			t.Errorf("an entry is %v", e)
		}
		delete(want, key)
	}
	for key := range want {
		t.Errorf("%s has no entry", key)
	}
}

// TestAuditRecordsRequestsRefusedBeforeACall sends requests without a token, and requests to paths outside the services.
func TestAuditRecordsRequestsRefusedBeforeACall(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	root, _ := f.token(t, "root", v1.RoleAdmin)
	node := f.nodeToken(t, "gpu-1")
	for path, token := range map[string]string{"/v1/runs": "", "/v1/nodes": "sy_a_b", "/openapi.json": node, "/v1/events?follow=true": node} {
		var header []string
		if token != "" {
			header = []string{"Authorization", "Bearer " + token}
		}
		if got := f.rest(t, "GET", path, "", header...); got.status != http.StatusUnauthorized && got.status != http.StatusForbidden {
			t.Errorf("%s: %d", path, got.status)
		}
	}
	// From a web page whose host name was pointed at this machine.
	if status := rawRequest(t, f.server.Address(), "rebound.example", http.MethodGet, "/v1/workflows", "Authorization: Bearer "+root+"\r\n"); status != http.StatusForbidden {
		t.Errorf("another host: %d", status)
	}
	f.recorder.Close()
	found := map[string]string{}
	for _, e := range f.auditEntries(t, root, &v1.ListAuditEntriesRequest{Result: "refused"}) {
		found[e.GetAction()] = e.GetBy() + " " + e.GetResult()
	}
	for action, want := range map[string]string{
		"GET /v1/runs": " unauthenticated", "GET /v1/nodes": " unauthenticated", "GET /v1/workflows": " permission_denied",
		"GET /openapi.json": "worker-gpu-1 permission_denied", "GET /v1/events": "worker-gpu-1 permission_denied",
	} {
		if found[action] != want {
			t.Errorf("%s: %q, want %q", action, found[action], want)
		}
	}
}

// TestAuditIsSharedByGateways records calls at one gateway, and reads them at an observer.
func TestAuditIsSharedByGateways(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, other := startLocked(t, dir), startLocked(t, dir, func(c *Config) { c.Observer = true })
	root, _ := f.token(t, "root", v1.RoleAdmin)
	ann, token := f.token(t, "ann", v1.RoleUser)
	bob, _ := f.token(t, "bob", v1.RoleUser)
	f.client = f.dialAs(t, ann)
	run := f.submit(t, "audited", "a")
	wantOne := func(req *v1.ListAuditEntriesRequest) *v1.AuditEntry {
		t.Helper()
		found := other.auditEntries(t, root, req)
		if len(found) != 1 {
			t.Errorf("%v: the entries are %v", req, found)
		}
		return found[0]
	}
	if e := wantOne(&v1.ListAuditEntriesRequest{Object: run}); e.GetBy() != "ann" || e.GetRole() != v1.RoleUser || e.GetToken() != token.GetId() ||
		e.GetAction() != "RunService/SubmitRun" || e.GetResult() != v1.AuditOK || strings.Contains(e.String(), "true") {
		t.Errorf("the entry of the submit is %v", e)
	}
	// To another user the run does not exist, so the call fails but is not a refusal.
	refused(t, "cancel a run of another user", f.dialAs(t, bob).CancelRun, &v1.CancelRunRequest{Id: run}, connect.CodeNotFound)
	if e := wantOne(&v1.ListAuditEntriesRequest{Who: "bob", Result: v1.AuditFailed}); e.GetResult() != "not_found" || e.GetObjects()["run"] != run || e.GetReason() != "" {
		t.Errorf("the entry of the cancel is %v", e)
	}
	// The node has no task of the run.
	node := f.openAs(t, f.nodeToken(t, "gpu-1"))
	key := storekey.Checkpoint(run+"/c", 0, "a", 1)
	wantCode(t, "a node stores a value of a run that it was given no task of", node.Put(t.Context(), key, nil), connect.CodePermissionDenied)
	f.recorder.Close() // flushes refusals, which are written asynchronously
	if e := wantOne(&v1.ListAuditEntriesRequest{Object: run, Result: v1.AuditRefused}); e.GetBy() != "worker-gpu-1" || e.GetObjects()["value"] != key || !strings.Contains(e.GetReason(), "gpu-1") {
		t.Errorf("the entry of the value is %v", e)
	}
	// A call that a gateway answers while it closes is audited too.
	do(t, f.client.CancelRun, &v1.CancelRunRequest{Id: run})
	wantOne(&v1.ListAuditEntriesRequest{Who: "ann", What: "cancel"})
}

// TestAuditWithoutTokensRecordsUnverifiedNames submits under an unverified name. Only the call of the audit serves its entries.
func TestAuditWithoutTokensRecordsUnverifiedNames(t *testing.T) {
	t.Parallel()
	f := start(t)
	req := connect.NewRequest(submitRequest(document("claimed", "a")))
	req.Header().Set(names.ActorHeader, "ann")
	req.Header().Set("X-Forwarded-For", "192.0.2.1")
	res, err := f.client.SubmitRun(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	terminate(t, res.Msg.GetId())
	all := f.auditEntries(t, "", &v1.ListAuditEntriesRequest{Who: "ann", Object: res.Msg.GetId()})
	if len(all) != 1 || all[0].GetBy() != "ann"+auth.Unverified || all[0].GetKind() != auth.KindNone || all[0].GetFrom() != "127.0.0.1" || all[0].GetForwardedFor() != "192.0.2.1" {
		t.Errorf("the entries are %v", all)
	}
	s := f.openAs(t, "") // with the rights of a node
	for kept, err := range f.config.Store.Keys(t.Context(), storekey.AuditPrefix) {
		if err != nil {
			t.Fatal(err)
		}
		if value, err := s.Get(t.Context(), kept); err == nil {
			t.Errorf("%s is served: %q", kept, value)
		}
		if err := s.Put(t.Context(), kept, nil); err == nil {
			t.Errorf("%s is replaced", kept)
		}
	}
	for key, err := range s.Keys(t.Context(), storekey.AuditPrefix) {
		if err == nil {
			t.Errorf("%s is listed", key)
		}
	}
}
