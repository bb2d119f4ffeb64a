package main

import (
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aead.dev/minisign"
)

// writeFile writes a file below a folder.
func writeFile(t *testing.T, text string, elements ...string) string {
	t.Helper()
	path := filepath.Join(elements...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// readFile returns the text of a file.
func readFile(t *testing.T, elements ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// built returns a small static program with modules, and a key, for all releases of the tests.
var built = sync.OnceValues(func() ([]byte, *minisign.PrivateKey) {
	dir, err := os.MkdirTemp("", "switchyard-release-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "program")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "./testdata/program").CombinedOutput(); err != nil {
		panic(string(out))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	_, key, err := minisign.GenerateKey(nil)
	if err != nil {
		panic(err)
	}
	return text, &key
})

// made makes a release in a folder of its own, from this source and small files in the place of what is built.
func made(t *testing.T) release {
	t.Helper()
	dir := t.TempDir()
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"man/switchyard.1", "completions/_switchyard", "completions/switchyard.bash", "completions/switchyard.fish"} {
		writeFile(t, name, dir, "manuals", name)
	}
	program, key := built()
	r := release{
		version: "0.2.0-rc.1", commit: strings.Repeat("c0ffee00", 5), time: time.Unix(1764000000, 0).UTC(),
		source: source, manuals: filepath.Join(dir, "manuals"), output: filepath.Join(dir, "dist"), key: key,
	}
	if err := os.Mkdir(r.output, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/arm64"} {
		system, architecture, _ := strings.Cut(platform, "/")
		r.binaries = append(r.binaries, binary{system, architecture, writeFile(t, string(program)+platform, dir, "built", platform)})
	}
	if err := r.make(); err != nil {
		t.Fatal(err)
	}
	return r
}

// files returns the names of the files of a release.
func (r release) files(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(r.output)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestReleaseIsTheSameInEveryFolder checks that two runs, in two folders and some seconds apart, give the same bytes.
func TestReleaseIsTheSameInEveryFolder(t *testing.T) {
	first, second := made(t), made(t)
	names := first.files(t)
	want := []string{
		sumsName, signatureName, "switchyard_0.2.0-rc.1.cdx.json", "switchyard_0.2.0-rc.1.provenance.json",
		"switchyard_0.2.0-rc.1_amd64.deb", "switchyard_0.2.0-rc.1_amd64.rpm", "switchyard_0.2.0-rc.1_arm64.deb", "switchyard_0.2.0-rc.1_arm64.rpm",
		"switchyard_0.2.0-rc.1_darwin_arm64.tar.gz", "switchyard_0.2.0-rc.1_linux_amd64.tar.gz", "switchyard_0.2.0-rc.1_linux_arm64.tar.gz",
		"switchyard_0.2.0-rc.1_oci.tar",
	}
	if !slices.Equal(names, want) || !slices.Equal(second.files(t), want) {
		t.Fatalf("%q and %q", names, second.files(t))
	}
	for _, name := range names {
		if sha256.Sum256(readFile(t, first.output, name)) != sha256.Sum256(readFile(t, second.output, name)) {
			t.Errorf("%s differs", name)
		}
	}
}

func TestVersionsOfReleases(t *testing.T) {
	for _, args := range [][]string{{"-version", "next"}, {"-version", "1.2"}, {"-version", "0.1.0", "linux=x"}, {"-version", "0.1.0", "linux/amd64"}} {
		if err := run(append([]string{"-unsigned"}, args...)); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
