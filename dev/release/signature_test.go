package main

import (
	"encoding"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aead.dev/minisign"
)

// marshal returns a key as minisign writes it.
func marshal(t *testing.T, key encoding.TextMarshaler) string {
	t.Helper()
	text, err := key.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSignatureCoversTheRelease checks that the checksums name every other file of a release, and that minisign accepts them as
// they are and refuses them when a byte has changed.
func TestSignatureCoversTheRelease(t *testing.T) {
	r := made(t)
	var summed []string
	for line := range strings.Lines(string(readFile(t, r.output, sumsName))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got, err := sumOf(filepath.Join(r.output, name)); err != nil || got != sum {
			t.Errorf("%s has the checksum %s (%v), listed is %s", name, got, err, sum)
		}
		summed = append(summed, name)
	}
	if want := slices.DeleteFunc(r.files(t), func(name string) bool { return name == sumsName || name == signatureName }); !slices.Equal(summed, want) {
		t.Errorf("the checksums name %q, the release has %q", summed, want)
	}
	public := r.key.Public().(minisign.PublicKey)
	sums, signature := readFile(t, r.output, sumsName), readFile(t, r.output, signatureName)
	altered := "0" + string(sums[1:])
	if altered == string(sums) {
		altered = "1" + string(sums[1:])
	}
	if !minisign.Verify(public, sums, signature) || minisign.Verify(public, []byte(altered), signature) {
		t.Error("the library accepts the signature for other checksums, or refuses it")
	}
	if _, err := exec.LookPath("minisign"); err != nil {
		t.Skip("minisign is not installed, so only the library has checked the signature")
	}
	key := writeFile(t, marshal(t, public), t.TempDir(), "release.pub")
	out, err := exec.Command("minisign", "-V", "-p", key, "-m", filepath.Join(r.output, sumsName)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Trusted comment: switchyard 0.2.0-rc.1, commit c0ffee00") {
		t.Errorf("minisign: %v\n%s", err, out)
	}
	writeFile(t, altered, r.output, sumsName)
	if out, err := exec.Command("minisign", "-V", "-p", key, "-m", filepath.Join(r.output, sumsName)).CombinedOutput(); err == nil {
		t.Errorf("minisign accepts other checksums\n%s", out)
	}
}

// TestKeysOfReleases checks which keys sign a release, and that the others are refused before anything is made.
func TestKeysOfReleases(t *testing.T) {
	dir := t.TempDir()
	_, key := built()
	public := writeFile(t, marshal(t, key.Public().(minisign.PublicKey)), dir, "release.pub")
	secret := writeFile(t, marshal(t, key), dir, "release.key")
	sealedText, err := minisign.EncryptKey("open sesame", *key)
	if err != nil {
		t.Fatal(err)
	}
	sealed := writeFile(t, string(sealedText), dir, "sealed.key")
	otherPublic, _, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	other := writeFile(t, marshal(t, otherPublic), dir, "other.pub")
	for _, c := range []struct{ name, public, secret, password, problem string }{
		{"a key without a password", public, secret, "", ""},
		{"a key with its password", public, sealed, "open sesame", ""},
		{"a key with another password", public, sealed, "sesame", passwordVariable},
		{"no key", public, "", "", "pass --unsigned"},
		{"no such key", public, filepath.Join(dir, "absent"), "", keyVariable},
		{"no public key", filepath.Join(dir, "absent.pub"), secret, "", "does not exist"},
		{"a public key that is none", secret, secret, "", "read public key"},
		{"a secret key that is none", public, public, "", "open key"},
		{"the key of another pair", other, secret, "", "sign with the secret half"},
	} {
		t.Setenv(keyVariable, c.secret)
		t.Setenv(passwordVariable, c.password)
		err := run([]string{"-version", "0.1.0", "-check", "-public-key", c.public})
		if (c.problem == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v, want %q", c.name, err, c.problem)
		}
	}
}

// TestScriptSignsOrSaysSo checks that dev/release.sh refuses to begin without a key.
func TestScriptSignsOrSaysSo(t *testing.T) {
	t.Setenv(keyVariable, "")
	dir := t.TempDir()
	public := writeFile(t, "", dir, "release.pub")
	out, err := exec.Command("../release.sh", "0.1.0", "--output", filepath.Join(dir, "dist"), "--public-key", public, "linux/amd64").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "pass --unsigned") {
		t.Errorf("without a key, dev/release.sh prints (%v)\n%s", err, out)
	}
}
