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

	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// TestAuditHasEveryWriteAndEveryRefusal sends each call to a gateway, as who may make it and as who may not.
func TestAuditHasEveryWriteAndEveryRefusal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Each entry is of another second, so that none is left out as one of a flood.
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
	// Refusals are not waited for.
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

// TestAuditHasWhatReachesNoCall refuses requests without a token, and at doors that are no calls.
func TestAuditHasWhatReachesNoCall(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	root, _ := f.token(t, "root", v1.RoleAdmin)
	node, _, err := f.config.Tokens.Create(t.Context(), &v1.Token{Name: "gpu-1", Role: v1.RoleNode, Node: "gpu-1"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for path, token := range map[string]string{"/v1/runs": "", "/v1/nodes": "sy_a_b", "/openapi.json": node, "/v1/events?follow=true": node} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.server.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
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
	} {
		if found[action] != want {
			t.Errorf("%s: %q, want %q", action, found[action], want)
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

func (f *fixture) auditClient(t *testing.T, token string) switchyardv1connect.AuditServiceClient {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return switchyardv1connect.NewAuditServiceClient(&http.Client{Transport: transport}, f.server.URL(), connect.WithInterceptors(bearer(token)))
}
