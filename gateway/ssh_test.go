package gateway

import (
	"crypto/ed25519"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	historyv1 "switchyard/proto/switchyard/history/v1"
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
	f.client = f.dialAs(t, ann)
	id := f.submitDocument(t, `name: ssh-reaches
tasks:
  box: { type: vps, spec: { image: "ubuntu:24.04", sshPublicKey: "`+machineLine+`" } }
  made: { type: vps, spec: { image: "ubuntu:24.04", sshPublicKey: "${{ workflow.input.key }}" } }
  build: { type: shell, spec: { command: 'true' } }
  forged: { type: shell, spec: { command: 'true' } }
`)
	for token, line := range map[string]string{ann: personLine, bob: otherLine} {
		do(t, dialService(t, f, switchyardv1connect.NewKeyServiceClient, token).AddKey, &v1.AddKeyRequest{PublicKey: line})
	}
	startAttempt(t, id, node, "build", 3)
	startAttempt(t, id, node, "box", 4)
	for task, claim := range map[string]int32{"made": 5, "forged": 6} {
		token := startAttempt(t, id, node, task, claim)
		if err := temporalClient.RecordActivityHeartbeat(t.Context(), token, &historyv1.ExecuteProgress{Spawned: true, Claim: claim, SshPublicKey: madeLine}); err != nil {
			t.Fatal(err)
		}
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
	counts := map[string]int{}
	for _, e := range f.auditEntries(t, root, &v1.ListAuditEntriesRequest{What: "SSH login"}) {
		counts[e.GetBy()+"/"+e.GetKind()+"/"+e.GetResult()] += 1 + int(e.GetOmitted())
	}
	if counts["ann/ssh_key/ok"] != 4 || counts["//permission_denied"] != 5 {
		t.Errorf("%v", counts)
	}
}
