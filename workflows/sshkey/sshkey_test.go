package sshkey

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// lineOf returns the line of a .pub file for a key.
func lineOf(t *testing.T, public any) string {
	t.Helper()
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

func newEd25519(t *testing.T) (string, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return lineOf(t, public), private
}

func TestKeysAreReadLineByLine(t *testing.T) {
	t.Parallel()
	first, _ := newEd25519(t)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	second := lineOf(t, &curve.PublicKey)
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	third := lineOf(t, &long.PublicKey)
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"one":                 {first, []string{first}},
		"with a comment":      {first + " me@host of the lab", []string{first}},
		"three":               {first + " a\n" + second + "\r\n" + third + " b\n", []string{first, second, third}},
		"twice":               {first + " a\n" + first + " b", []string{first}},
		"blanks and comments": {"# mine\n\n  " + first + "\n#" + second + "\n", []string{first}},
	} {
		keys, fault := Parse(test.text)
		if fault != nil {
			t.Errorf("%s: %v", name, fault)
			continue
		}
		var got []string
		for _, key := range keys {
			got = append(got, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))))
		}
		if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestInvalidKeysAreReportedButNeverShown(t *testing.T) {
	t.Parallel()
	good, private := newEd25519(t)
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	secret := string(pem.EncodeToMemory(block))
	body := base64.StdEncoding.EncodeToString(block.Bytes)
	data := strings.Fields(good)[1]
	for name, test := range map[string]struct {
		text, reason string
		line         int
	}{
		"nothing":              {"", "contains no public key", 0},
		"comments only":        {"# none\n\n", "contains no public key", 0},
		"a word":               {"hunter2", "is not a public key", 1},
		"the second line":      {good + "\nhunter2", "is not a public key", 2},
		"a private key":        {secret, "contains a private key", 0},
		"one beside a key":     {good + "\n" + secret, "contains a private key", 0},
		"the body of one":      {body, "contains a private key", 0},
		"PuTTY's":              {"PuTTY-User-Key-File-3: ssh-ed25519\n", "contains a private key", 0},
		"options":              {`command="id",no-pty ` + good, "has options before the key", 1},
		"a host":               {"example.com " + good, "has options before the key", 1},
		"no key":               {"ssh-ed25519", "has a type but no key", 1},
		"cut off":              {"ssh-ed25519 " + data[:len(data)-8], "has a key that is cut off or misspelled", 1},
		"no base64":            {"ssh-ed25519 AAAA-_AAAA", "has a key that is cut off or misspelled", 1},
		"three dots":           {"ssh-ed25519 AAAA... me@host", "has a key that is cut off or misspelled", 1},
		"another type":         {"ssh-rsa " + data, "is of type ssh-rsa, but its key is of type ssh-ed25519", 1},
		"DSA":                  {"ssh-dss AAAA", "is a key of type ssh-dss, which is no longer secure", 1},
		"a certificate":        {"ssh-ed25519-cert-v01@openssh.com AAAA", "is a certificate", 1},
		"RFC 4716":             {"---- BEGIN SSH2 PUBLIC KEY ----\n" + data, "begins a key in the format of RFC 4716", 1},
		"an escape sequence":   {good + " \x1b[2J", "contains a control character", 1},
		"escapes between keys": {good + "\n" + good + " \x07\n", "contains a control character", 2},
	} {
		keys, fault := Parse(test.text)
		if fault == nil || fault.Reason != test.reason || fault.Line != test.line || keys != nil {
			t.Errorf("%s: %v, %+v", name, keys, fault)
			continue
		}
		if test.line > 0 && strings.Count(test.text[:fault.Offset], "\n") != test.line-1 {
			t.Errorf("%s: line %d is at %d", name, test.line, fault.Offset)
		}
		for _, said := range []string{"hunter2", "\x1b", "\x07", body[:20]} {
			if strings.Contains(fault.Error(), said) {
				t.Errorf("%s: the fault shows what stands there: %v", name, fault)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGKlPnmXQqFUxEfGmxWEUgUoBcVRJkX5AQJNyXwFSRyh a\n# b\n")
	f.Add("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ==\x00")
	f.Fuzz(func(t *testing.T, text string) {
		keys, fault := Parse(text)
		if (fault == nil) == (len(keys) == 0) {
			t.Errorf("%d keys, fault %v", len(keys), fault)
		}
		if fault != nil && (fault.Offset < 0 || fault.Offset > len(text)) {
			t.Errorf("offset %d of %d", fault.Offset, len(text))
		}
	})
}
