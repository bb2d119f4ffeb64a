package main

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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
	r := release{
		version: "0.2.0-rc.1", commit: strings.Repeat("c0ffee00", 5), time: time.Unix(1764000000, 0).UTC(),
		source: source, manuals: filepath.Join(dir, "manuals"), output: dir,
	}
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/arm64"} {
		system, architecture, _ := strings.Cut(platform, "/")
		r.binaries = append(r.binaries, binary{system, architecture, writeFile(t, strings.Repeat(platform, 100_000), dir, "built", platform)})
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
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestReleaseIsTheSameInEveryFolder checks that two runs, in two folders and some seconds apart, give the same bytes.
func TestReleaseIsTheSameInEveryFolder(t *testing.T) {
	first, second := made(t), made(t)
	names := first.files(t)
	if !slices.Equal(names, second.files(t)) || len(names) < 8 {
		t.Fatalf("%q and %q", names, second.files(t))
	}
	for _, name := range names {
		sum := func(r release) [sha256.Size]byte {
			text, err := os.ReadFile(filepath.Join(r.output, name))
			if err != nil {
				t.Fatal(err)
			}
			return sha256.Sum256(text)
		}
		if sum(first) != sum(second) {
			t.Errorf("%s differs", name)
		}
	}
}

func TestVersionsOfReleases(t *testing.T) {
	for _, args := range [][]string{{"-version", "next"}, {"-version", "1.2"}, {"-version", "0.1.0", "linux=x"}, {"-version", "0.1.0", "linux/amd64"}} {
		if err := run(args); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
