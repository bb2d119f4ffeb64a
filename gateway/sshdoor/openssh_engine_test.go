//go:build engines

package sshdoor

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"switchyard/dev/sessiontest"
)

func TestOpenSSHLogsIn(t *testing.T) {
	f := newFixture(t, nil)
	client := sessiontest.NewOpenSSH(t, f.Address(), "box.ci-1")
	f.runs.keys["ci-1"] = map[string]string{"box": client.AuthorizedKey()}
	if out, err := client.SSH(nil, "echo hello; exit 3").Output(); err == nil || string(out) != "hello\n" || !strings.Contains(err.Error(), "status 3") {
		t.Errorf("%q, %v", out, err)
	}
	from, to := filepath.Join(f.dir, "from"), filepath.Join(f.dir, "to")
	if err := os.WriteFile(from, bytes.Repeat([]byte("0123456789"), 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := client.Copy("scp", from, client.Target()+":to").CombinedOutput(); err != nil {
		t.Errorf("%s, %v", out, err)
	}
	if a, b := mustRead(t, from), mustRead(t, to); !bytes.Equal(a, b) {
		t.Errorf("%d bytes, not %d", len(b), len(a))
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(client.AuthorizedKey()))
	if err != nil {
		t.Fatal(err)
	}
	client.User = "box.none"
	if out, err := client.SSH(nil, "true").CombinedOutput(); err == nil || !strings.Contains(string(out), "Permission denied (publickey)") {
		t.Errorf("%s, %v", out, err)
	}
	for range freeFailures {
		_, _ = client.SSH(nil, "true").CombinedOutput()
	}
	await(t, true, func() bool { return f.failures(key) >= freeFailures })
	client.User = "box.ci-1"
	if out, err := client.SSH([]string{"-v"}, "true").CombinedOutput(); err == nil || !strings.Contains(string(out), "Too many refused logins with the key SHA256:") {
		t.Errorf("%s, %v", out, err)
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
