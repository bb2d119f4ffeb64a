package gateway

import (
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/activities/store/storekey"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/names"
)

// TestAuditHasEveryWriteAndEveryRefusal sends each call to a gateway, from callers who may make it and from
// callers who may not.
func TestAuditHasEveryWriteAndEveryRefusal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Each entry has its own second, so that none is dropped as part of a flood.
	var seconds atomic.Int64
	began := time.Now()
	f := startLocked(t, dir, func(c *Config) {
		c.Now = func() time.Time { return began.Add(time.Duration(seconds.Add(1)) * time.Second) }
	})
	root, _ := f.token(t, "root", v1.RoleAdmin)
	viewer, _ := f.token(t, "vera", v1.RoleViewer)
	node, _, err := f.config.Tokens.Create(t.Context(), &v1.Token{Name: "gpu-1", Role: v1.RoleNode, Node: "gpu-1"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	each(func(call protoreflect.MethodDescriptor) {
		rules := v1.RulesOf(call)
		action := string(call.Parent().Name()) + "/" + string(call.Name())
		if rules.GetEffect() == v1.Effect_EFFECT_WRITE && !rules.GetUnaudited() {
			f.post(t, root, call, `{}`)
			want["root "+action] = "failed or ok"
		}
		if !rules.GetNode() {
			f.post(t, node, call, `{}`)
			want["gpu-1 "+action] = "permission_denied"
		}
		if !rules.GetRole().Includes(v1.Role_ROLE_UNSPECIFIED) && !v1.Role_ROLE_VIEWER.Includes(rules.GetRole()) {
			f.post(t, viewer, call, `{}`)
			want["vera "+action] = "permission_denied"
		}
	})
	// The recorder writes refusals asynchronously; Close flushes them.
	f.recorder.Close()
	res, err := f.auditClient(t, root).ListAuditEntries(t.Context(), connect.NewRequest(&v1.ListAuditEntriesRequest{PageSize: 1000}))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range res.Msg.GetItems() {
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
	// No token is in the store.
	for _, token := range []string{root, viewer, node} {
		part := token[strings.LastIndexByte(token, '_')+1:]
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if strings.Contains(string(data), part) {
				t.Errorf("%s has a token", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestAuditRecordsRequestsRefusedBeforeACall sends requests without a token, and requests to paths outside the services.
func TestAuditRecordsRequestsRefusedBeforeACall(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	root, _ := f.token(t, "root", v1.RoleAdmin)
	node, _, err := f.config.Tokens.Create(t.Context(), &v1.Token{Name: "gpu-1", Role: v1.RoleNode, Node: "gpu-1"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for path, token := range map[string]string{"/v1/runs": "", "/v1/nodes": "sy_a_b", "/openapi.json": node, "/v1/events?follow=true": node, "/v1/workflows": root} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.server.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		if path == "/v1/workflows" {
			req.Host = "rebound.example"
		}
		res, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s, %v", path, res.Status, err)
		}
	}
	f.recorder.Close()
	res, err := f.auditClient(t, root).ListAuditEntries(t.Context(), connect.NewRequest(&v1.ListAuditEntriesRequest{Result: "refused"}))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range res.Msg.GetItems() {
		found[e.GetAction()] = e.GetBy() + " " + e.GetResult()
	}
	for action, want := range map[string]string{
		"GET /v1/runs": " unauthenticated", "GET /v1/nodes": " unauthenticated", "GET /openapi.json": "gpu-1 permission_denied", "GET /v1/events": "gpu-1 permission_denied",
		"GET /v1/workflows": " permission_denied", // from a web page whose host name was pointed at this machine
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
	submitted, err := f.dialAs(t, ann).SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: document("audited", "a")}}))
	if err != nil {
		t.Fatal(err)
	}
	run := submitted.Msg.GetId()
	entries := func(req *v1.ListAuditEntriesRequest) []*v1.AuditEntry {
		t.Helper()
		return other.auditEntries(t, root, req)
	}
	if found := entries(&v1.ListAuditEntriesRequest{Object: run}); len(found) != 1 || found[0].GetBy() != "ann" || found[0].GetRole() != v1.RoleUser || found[0].GetToken() != token.GetId() ||
		found[0].GetAction() != "RunService/SubmitRun" || found[0].GetResult() != v1.AuditOK || strings.Contains(found[0].String(), "true") {
		t.Errorf("the entry of the submit is %v", found)
	}
	// To another user the run does not exist, so the call fails but is not a refusal.
	_, err = f.dialAs(t, bob).CancelRun(t.Context(), connect.NewRequest(&v1.CancelRunRequest{Id: run}))
	wantCode(t, "cancel a run of another user", err, connect.CodeNotFound)
	if found := entries(&v1.ListAuditEntriesRequest{Who: "bob", Result: v1.AuditFailed}); len(found) != 1 || found[0].GetResult() != "not_found" || found[0].GetObjects()["run"] != run || found[0].GetReason() != "" {
		t.Errorf("the entry of the cancel is %v", found)
	}
	// The node has no task of the run.
	key := storekey.Checkpoint(run+"/c", 0, "a", 1)
	if err := f.openAs(t, f.nodeToken(t, "gpu-1")).Put(t.Context(), key, nil); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a node stores a value of a run that it was given no task of: %v", err)
	}
	f.recorder.Close() // flushes refusals, which are written asynchronously
	if found := entries(&v1.ListAuditEntriesRequest{Object: run, Result: v1.AuditRefused}); len(found) != 1 || found[0].GetBy() != "worker-gpu-1" || found[0].GetObjects()["value"] != key || !strings.Contains(found[0].GetReason(), "gpu-1") {
		t.Errorf("the entry of the value is %v", found)
	}
	// A call that a gateway answers while it closes is audited too.
	if _, err := f.dialAs(t, ann).CancelRun(t.Context(), connect.NewRequest(&v1.CancelRunRequest{Id: run})); err != nil {
		t.Fatal(err)
	}
	if found := entries(&v1.ListAuditEntriesRequest{Who: "ann", What: "cancel"}); len(found) != 1 {
		t.Errorf("the entries of the cancel are %v", found)
	}
	// Only the call of the audit serves its values.
	for kept, err := range f.config.Store.Keys(t.Context(), storekey.AuditPrefix) {
		if err != nil {
			t.Fatal(err)
		}
		for name, token := range map[string]string{"root": root, "a node": f.nodeToken(t, "gpu-2")} {
			if value, err := f.openAs(t, token).Get(t.Context(), kept); err == nil {
				t.Errorf("%s reads %s: %q", name, kept, value)
			}
			if err := f.openAs(t, token).Put(t.Context(), kept, nil); err == nil {
				t.Errorf("%s stores %s", name, kept)
			}
		}
		break
	}
}

// TestAuditWithoutTokensRecordsUnverifiedNames submits under an unverified name.
func TestAuditWithoutTokensRecordsUnverifiedNames(t *testing.T) {
	t.Parallel()
	f := start(t)
	req := connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: document("claimed", "a")}})
	req.Header().Set(names.ActorHeader, "ann")
	req.Header().Set("X-Forwarded-For", "192.0.2.1")
	res, err := f.client.SubmitRun(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	all := f.auditEntries(t, "", &v1.ListAuditEntriesRequest{Who: "ann", Object: res.Msg.GetId()})
	if len(all) != 1 || all[0].GetBy() != "ann"+auth.Unverified || all[0].GetKind() != auth.KindNone || all[0].GetFrom() != "127.0.0.1" || all[0].GetForwardedFor() != "192.0.2.1" {
		t.Errorf("the entries are %v", all)
	}
	// The store of a gateway without tokens is open to nodes, except for the audit.
	s := f.openRemote(t)
	for kept, err := range f.config.Store.Keys(t.Context(), storekey.AuditPrefix) {
		if err != nil {
			t.Fatal(err)
		}
		if value, err := s.Get(t.Context(), kept); err == nil {
			t.Errorf("%s is served: %q", kept, value)
		}
	}
	for key, err := range s.Keys(t.Context(), storekey.AuditPrefix) {
		if err == nil {
			t.Errorf("%s is listed", key)
		}
	}
}

// each calls do with every call of the API.
func each(do func(call protoreflect.MethodDescriptor)) {
	for _, service := range v1.Services() {
		for i := range service.Methods().Len() {
			do(service.Methods().Get(i))
		}
	}
}

// auditEntries returns the entries that match a request once there are any. A gateway stores the entry of a call before it
// answers, unless its store takes too long.
func (f *fixture) auditEntries(t *testing.T, token string, req *v1.ListAuditEntriesRequest) (found []*v1.AuditEntry) {
	t.Helper()
	client := f.auditClient(t, token)
	eventually(t, "the audit has an entry", func() bool {
		res, err := client.ListAuditEntries(t.Context(), connect.NewRequest(req))
		if err != nil {
			t.Fatal(err)
		}
		found = res.Msg.GetItems()
		return len(found) > 0
	})
	return found
}

func (f *fixture) auditClient(t *testing.T, token string) switchyardv1connect.AuditServiceClient {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return switchyardv1connect.NewAuditServiceClient(&http.Client{Transport: transport}, f.server.URL(), connect.WithInterceptors(bearer(token)))
}
