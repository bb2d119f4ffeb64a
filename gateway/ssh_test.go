package gateway

import (
	"crypto/ed25519"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"golang.org/x/crypto/ssh"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// newKey returns a new SSH key and its line of authorized_keys.
func newKey(t *testing.T) (key ssh.Signer, line string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if key, err = ssh.NewSignerFromKey(private); err != nil {
		t.Fatal(err)
	}
	return key, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
}

// overSSH logs in and runs a command. It returns the output, or an error if the login is refused or the command fails.
func (f *fixture) overSSH(t *testing.T, user string, key ssh.Signer, command string) (string, error) {
	t.Helper()
	client, err := ssh.Dial("tcp", f.server.SSHAddress(), &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		return "", err
	}
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	out, err := session.CombinedOutput(command)
	return string(out), err
}

// TestSSHReachesAttemptsOfTheOwner connects to a node over SSH, with the key of a user and with the key of a machine.
func TestSSHReachesAttemptsOfTheOwner(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir(), func(c *Config) { c.SSHAddress = "127.0.0.1:0" })
	if _, port, _ := net.SplitHostPort(f.server.SSHAddress()); port != strconv.Itoa(f.config.SSHPort) || port == "0" {
		t.Errorf("it listens on %s, and its port is %d", f.server.SSHAddress(), f.config.SSHPort)
	}
	ann, _ := f.token(t, "ann", v1.RoleUser)
	bob, _ := f.token(t, "bob", v1.RoleUser)
	root, _ := f.token(t, "root", v1.RoleAdmin)
	const node = "ssh-node"
	f.awaitLink(t, scriptedNode(t, f.server.URL(), f.nodeToken(t, node), node), node)
	person, personLine := newKey(t)
	machine, machineLine := newKey(t)
	made, madeLine := newKey(t)
	other, otherLine := newKey(t)
	submitted, err := f.dialAs(t, ann).SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: `name: ssh-reaches
tasks:
  box: { type: vps, spec: { image: "ubuntu:24.04", sshPublicKey: "` + machineLine + `" } }
  made: { type: vps, spec: { image: "ubuntu:24.04", sshPublicKey: "${{ workflow.input.key }}" } }
  build: { type: shell, spec: { command: 'true' } }
  forged: { type: shell, spec: { command: 'true' } }
`}}))
	if err != nil {
		t.Fatal(err)
	}
	id := submitted.Msg.GetId()
	terminate(t, id)
	keys := func(token string) switchyardv1connect.KeyServiceClient {
		return switchyardv1connect.NewKeyServiceClient(f.httpClient(t), f.server.URL(), connect.WithInterceptors(bearer(token)))
	}
	for token, line := range map[string]string{ann: personLine, bob: otherLine} {
		if _, err := keys(token).AddKey(t.Context(), connect.NewRequest(&v1.AddKeyRequest{PublicKey: line})); err != nil {
			t.Fatal(err)
		}
	}
	startAttempt(t, id, node, "build", 3)
	startAttempt(t, id, node, "box", 4)
	token := startAttempt(t, id, node, "made", 5)
	if err := temporalClient.RecordActivityHeartbeat(t.Context(), token, &v1.ExecuteProgress{Spawned: true, Claim: 5, SshPublicKey: madeLine}); err != nil {
		t.Fatal(err)
	}
	forged := startAttempt(t, id, node, "forged", 6)
	if err := temporalClient.RecordActivityHeartbeat(t.Context(), forged, &v1.ExecuteProgress{Spawned: true, Claim: 6, SshPublicKey: madeLine}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		key  ssh.Signer
		task string
		want string // "" if refused
	}{
		{person, "build", id + " build#3 on " + node + " by ann: []"}, {person, "box", id + " box#4 on " + node + " by ann: []"},
		{made, "made", id + " made#5 on " + node + " by ann: []"}, {made, "box", ""}, {made, "forged", ""},
		{machine, "box", id + " box#4 on " + node + " by ann: []"}, {machine, "build", ""}, {other, "build", ""}, {other, "box", ""},
	} {
		out, err := f.overSSH(t, test.task+"."+id, test.key, "a line")
		exit, ended := errors.AsType[*ssh.ExitError](err)
		if out != test.want || test.want != "" && (!ended || exit.ExitStatus() != 7) || test.want == "" && (err == nil || !strings.Contains(err.Error(), "unable to authenticate")) {
			t.Errorf("%s: %q, %v, want %q", test.task, out, err, test.want)
		}
	}
	f.recorder.Close() // flushes refusals, which are written asynchronously
	listed, err := f.auditClient(t, root).ListAuditEntries(t.Context(), connect.NewRequest(&v1.ListAuditEntriesRequest{What: "SSH login"}))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, e := range listed.Msg.GetItems() {
		counts[e.GetBy()+"/"+e.GetKind()+"/"+e.GetResult()] += 1 + int(e.GetOmitted())
	}
	if counts["ann/ssh_key/ok"] != 4 || counts["//permission_denied"] != 5 {
		t.Errorf("%v", counts)
	}
}

// TestKeyLifecycleOverREST covers the REST paths of keys, whose fingerprints use a different alphabet.
func TestKeyLifecycleOverREST(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	token, _ := f.token(t, "ann", v1.RoleUser)
	viewer, _ := f.token(t, "eve", v1.RoleViewer)
	_, line := newKey(t)
	added := f.rest(t, "POST", "/v1/keys", `{"publicKey": "`+line+` ann@laptop"}`, "Content-Type", jsonHeader, "Authorization", "Bearer "+token)
	print, _ := added.value["fingerprint"].(string)
	if key, ok := added.value["key"].(map[string]any); ok {
		print, _ = key["fingerprint"].(string)
	}
	if added.status/100 != 2 || !strings.HasPrefix(print, "SHA256:") {
		t.Fatalf("%d %s", added.status, added.text)
	}
	if got := f.rest(t, "POST", "/v1/keys", `{"publicKey": "`+line+`"}`, "Content-Type", jsonHeader, "Authorization", "Bearer "+viewer); got.status != http.StatusForbidden {
		t.Errorf("a viewer: %d %s", got.status, got.text)
	}
	if got := f.rest(t, "GET", "/v1/keys", "", "Authorization", "Bearer "+viewer); got.status != http.StatusOK || strings.Contains(got.text, print) {
		t.Errorf("a viewer lists: %d %s", got.status, got.text)
	}
	path := "/v1/keys/" + strings.NewReplacer("/", "_", "+", "-").Replace(print)
	if got := f.rest(t, "DELETE", path, "", "Authorization", "Bearer "+token); got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.text)
	}
	if got := f.rest(t, "DELETE", path, "", "Authorization", "Bearer "+token); got.status != http.StatusNotFound {
		t.Errorf("%d %s", got.status, got.text)
	}
}
