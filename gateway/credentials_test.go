package gateway

import (
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"golang.org/x/crypto/ssh"

	v1 "switchyard/proto/switchyard/v1"
)

// TestStreamEndsWhenItsTokenIsRevoked revokes a token at one gateway that a stream at another gateway uses.
func TestStreamEndsWhenItsTokenIsRevoked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, other := startLocked(t, dir), startLocked(t, dir)
	secret, created := f.token(t, "ann", v1.RoleOperator)
	f.token(t, "root", v1.RoleAdmin)
	f.client, other.client = f.dialAs(t, secret), other.dialAs(t, secret)
	id := f.submit(t, "revoked-stream")
	w := other.watch(t, id)
	w.next()
	followed, _ := other.openStream(t, "/v1/runs/"+id+"/events?follow=true", "Authorization", "Bearer "+secret)
	if _, err := f.config.Tokens.Revoke(t.Context(), created.GetId(), "root"); err != nil {
		t.Fatal(err)
	}
	for w.next() {
	}
	if err := w.stream.Err(); connect.CodeOf(err) != connect.CodeUnauthenticated || !strings.Contains(err.Error(), "was revoked") {
		t.Errorf("the stream of Connect ended with %v", err)
	}
	if text, err := io.ReadAll(followed.body); err != nil || !strings.Contains(string(text), "was revoked") {
		t.Errorf("%v: the stream of events ended with %s", err, text)
	}
	refused(t, "a later call", other.client.GetRun, &v1.GetRunRequest{Id: id}, connect.CodeUnauthenticated)
}

// restCase is a REST request with a token, and what its response contains.
type restCase struct {
	token, method, path, body string
	status                    int
	want                      string
}

// checkREST sends requests one after the other. No response contains the forbidden texts.
func (f *fixture) checkREST(t *testing.T, cases []restCase, forbidden ...string) {
	t.Helper()
	for _, c := range cases {
		headers := []string{"Content-Type", jsonHeader}
		if c.token != "" {
			headers = append(headers, "Authorization", "Bearer "+c.token)
		}
		got := f.rest(t, c.method, c.path, c.body, headers...)
		said, _ := json.Marshal(got.value) // without optional spaces
		if got.status != c.status || !strings.Contains(string(said), c.want) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, got.status, said, c.status, c.want)
		}
		for _, text := range forbidden {
			if strings.Contains(got.text, text) {
				t.Errorf("%s %s tells %s: %s", c.method, c.path, text, got.text)
			}
		}
	}
}

func TestTokensAreManagedOverREST(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	admin, _ := f.token(t, "root", v1.RoleAdmin)
	user, _ := f.token(t, "ann", v1.RoleUser)
	f.checkREST(t, []restCase{
		{"", "GET", "/v1/whoami", "", 401, "switchyard login"},
		{user, "GET", "/v1/whoami", "", 200, `"role":"user"`},
		{user, "POST", "/v1/tokens", `{"name":"eve","role":"admin"}`, 403, "CreateToken needs the role admin; ann has the role user"},
		{admin, "POST", "/v1/tokens", `{"name":"eve","role":"root"}`, 400, "role"},
		{admin, "POST", "/v1/tokens", `{"name":"eve (unverified)","role":"user"}`, 400, "name"},
		{admin, "POST", "/v1/tokens", `{"name":"eve","role":"user","expiresIn":"3600s"}`, 200, `"secret":"sy_`},
		{admin, "GET", "/v1/tokens", "", 200, `"name":"eve"`},
		{admin, "DELETE", "/v1/tokens/eve", "", 200, `"revokedBy":"root"`},
		{admin, "DELETE", "/v1/tokens/eve", "", 404, "no token"},
	})
}

func TestSecretsAreManagedOverREST(t *testing.T) {
	t.Parallel()
	f := startLocked(t, filepath.Join(t.TempDir(), "store"))
	operator, _ := f.token(t, "ann", v1.RoleOperator)
	user, _ := f.token(t, "bob", v1.RoleUser)
	f.checkREST(t, []restCase{
		{user, "POST", "/v1/secrets", `{"name": "deploy", "value": "aHVudGVyMg=="}`, 403, "needs the role operator"},
		{operator, "POST", "/v1/secrets", `{"name": "deploy", "value": "aHVudGVyMg=="}`, 200, `"setBy":"ann"`},
		{operator, "PUT", "/v1/secrets/deploy", `{"value": "aHVudGVyMg==", "role": "user"}`, 200, `"version":2`},
		{operator, "POST", "/v1/secrets", `{"name": "a/b", "value": "aHVudGVyMg=="}`, 400, "name"},
		{operator, "POST", "/v1/secrets", `{"name": "deploy", "value": ""}`, 400, "value"},
		{operator, "POST", "/v1/secrets", `{"name": "deploy", "value": "aHVudGVyMg==", "role": "viewer"}`, 400, "role"},
		{operator, "GET", "/v1/secrets", "", 200, `"name":"deploy","role":"user"`},
		{operator, "GET", "/v1/secrets/deploy", "", 405, "takes DELETE, PUT"},
		{operator, "DELETE", "/v1/secrets/deploi", "", 404, "did you mean deploy"},
		{operator, "DELETE", "/v1/secrets/deploy", "", 200, `"deploy"`},
	}, "aHVudGVyMg", "hunter2")
}

// TestKeysAreManagedOverREST covers the REST paths of keys. Their fingerprints use another alphabet than the rest.
func TestKeysAreManagedOverREST(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	ann, _ := f.token(t, "ann", v1.RoleUser)
	viewer, _ := f.token(t, "eve", v1.RoleViewer)
	key, line := newKey(t)
	print := ssh.FingerprintSHA256(key.PublicKey())
	path := "/v1/keys/" + strings.NewReplacer("/", "_", "+", "-").Replace(print)
	f.checkREST(t, []restCase{
		{viewer, "POST", "/v1/keys", `{"publicKey": "` + line + `"}`, 403, "needs the role user"},
		{ann, "POST", "/v1/keys", `{"publicKey": "` + line + ` ann@laptop"}`, 200, print},
		{viewer, "GET", "/v1/keys", "", 200, `"items":[]`},
		{ann, "DELETE", path, "", 200, ""},
		{ann, "DELETE", path, "", 404, ""},
	})
}
