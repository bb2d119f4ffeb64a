package cli

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"google.golang.org/protobuf/proto"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

func TestKeysAddSendsAPublicKey(t *testing.T) {
	f := fake(t)
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " ann@laptop\n"
	script(f, &v1.AddKeyResponse{Key: &v1.Key{Fingerprint: "SHA256:x", Name: "ann", Role: v1.RoleUser}})
	for i, test := range []struct{ file, stdin string }{{write(t, "id.pub", line), ""}, {"-", line}} {
		got := runWith(t, nil, test.stdin, "keys", "add", test.file, "--gateway", f.url)
		if got.code != 0 || !strings.Contains(got.stderr, "key SHA256:x of ann is added, role user") || requests[*v1.AddKeyRequest](f)[i].GetPublicKey() != line {
			t.Errorf("%+v, sent %v", got, f.asked)
		}
	}
}

// TestKeysAddRefusesTextThatIsNotAPublicKey checks that text other than a public key is neither sent nor shown in the error.
func TestKeysAddRefusesTextThatIsNotAPublicKey(t *testing.T) {
	f := fake(t)
	script(f, &v1.AddKeyResponse{})
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	weak, err := ssh.NewPublicKey(&short.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	weakLine := string(ssh.MarshalAuthorizedKey(weak))
	for name, test := range map[string]struct{ text, says string }{
		"a private key": {string(pem.EncodeToMemory(block)), "private key must not leave"}, "a word": {"hunter2", "public key"}, "nothing": {"", "public key"},
		"a short RSA key": {weakLine, "RSA key of 1024 bits; it must have at least 2048"}, "a DSA key": {"ssh-dss AAAAB3NzaC1kc3M= x", "no longer secure"},
		"a key that is cut off": {"ssh-ed25519 AAAAC3NzaC1lZDI1", "cut off"},
	} {
		got := runWith(t, nil, test.text, "keys", "add", "-", "--gateway", f.url)
		shown := len(test.text) > 20 && strings.Contains(got.stderr, test.text[10:20])
		if got.code != exit.CodeUsage || !strings.Contains(got.stderr, test.says) || strings.Contains(got.stderr, "hunter2") || shown {
			t.Errorf("%s: %+v", name, got)
		}
	}
	file := write(t, "id", string(bytes.TrimSpace(pem.EncodeToMemory(block))))
	run(t, "keys", "add", file, "--gateway", f.url).ends(t, exit.CodeUsage, "contains a private key")
	run(t, "keys", "add", file+".none", "--gateway", f.url).ends(t, exit.CodeUsage, "")
	if len(f.asked) != 0 {
		t.Errorf("sent %v", f.asked)
	}
}

func TestKeysListAndRemove(t *testing.T) {
	f := fake(t)
	script(f, &v1.ListKeysResponse{Items: []*v1.Key{
		{Fingerprint: "SHA256:Jx8FLTmyzXFGPMbiyUpuKyb2cHZnPjKmpp9Ux1h2YSo", Type: "ssh-ed25519", Name: "ann", Role: v1.RoleUser, Comment: "ann@laptop", CreatedAt: after(5), PublicKey: "ssh-ed25519 AAAA"},
		{Fingerprint: "SHA256:OdmaR4eOvaOEbTMOzZlJzIrjsVDLWQAk3gJKvxYmYtg", Type: "ssh-rsa", Name: "bob", Role: v1.RoleAdmin, CreatedAt: after(6), PublicKey: "ssh-rsa AAAA"},
	}})
	showsGolden(t, "keys-list", []string{"text", "json"}, "keys", "list", "--gateway", f.url)
	script(f, &v1.RemoveKeyResponse{Key: &v1.Key{Fingerprint: "SHA256:x", Name: "ann", Role: v1.RoleUser}})
	got := run(t, "keys", "remove", "SHA256:x", "--name", "ann", "--gateway", f.url)
	if got.code != 0 || !strings.Contains(got.stderr, "key SHA256:x of ann is removed") || !proto.Equal(f.asked[len(f.asked)-1], &v1.RemoveKeyRequest{Fingerprint: "SHA256:x", Name: "ann"}) {
		t.Errorf("%+v, asked %v", got, f.asked)
	}
}
