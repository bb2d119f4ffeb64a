package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The fragments of this repository are well-formed.
func TestFragments(t *testing.T) {
	if _, err := readFragments("../../" + fragmentFolder); err != nil {
		t.Error(err)
	}
}

func TestFragmentProblemsNameTheirPlace(t *testing.T) {
	for name, test := range map[string]struct{ file, text, want string }{
		"name":         {"doctor.md", "### Added\n- x\n", "changes/doctor.md: name the fragment for its issue"},
		"no heading":   {"52.md", "- x\n", `changes/52.md:1: "- x" is neither`},
		"odd heading":  {"52.md", "### Added\n- x\n\n### New\n- y\n", `changes/52.md:4: "### New" is neither`},
		"prose":        {"52.md", "### Added\nx\n", `changes/52.md:2: "x" is neither`},
		"continuation": {"52.md", "### Added\n- x\n### Fixed\n  y\n", `changes/52.md:4: "  y" is neither`},
		"empty":        {"52-doctor.md", "### Added\n", "changes/52-doctor.md: the fragment has no point"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseFragment(test.file, test.text); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %s", err, test.want)
			}
		})
	}
}

func TestReleaseMovesFragmentsIntoTheChangelog(t *testing.T) {
	dir := t.TempDir()
	changelog := filepath.Join(dir, "CHANGELOG.md")
	write(t, changelog, "# Changelog\n\n"+newest+"\n## 0.1.0 - 2026-01-01\n\n### Added\n\n- All of it. (#1)\n")
	write(t, filepath.Join(dir, "changes/README.md"), "no fragment")
	write(t, filepath.Join(dir, "changes/52.md"), "### Fixed\n- A fault.\n\n### Added\n- One thing\n  on two lines.\n")
	write(t, filepath.Join(dir, "changes/7-x.md"), "### Added\n- Another thing.\n")
	at := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	if err := release(dir, "0.2.0", at); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(changelog)
	if err != nil {
		t.Fatal(err)
	}
	want := "# Changelog\n\n" + newest + `
## 0.2.0 - 2026-12-01

### Added

- One thing
  on two lines. (#52)
- Another thing. (#7)

### Fixed

- A fault. (#52)

## 0.1.0 - 2026-01-01

### Added

- All of it. (#1)
`
	if string(text) != want {
		t.Errorf("the changelog is\n%s\nwant\n%s", text, want)
	}
	for version, want := range map[string]string{"v0.3.0": "without a v", "0.3.0": "has no fragments"} {
		if err := release(dir, version, at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("release %s returns %v, want %s", version, err, want)
		}
	}
	write(t, filepath.Join(dir, "changes/60.md"), "### Added\n- x\n")
	if err := release(dir, "0.2.0", at); err == nil || !strings.Contains(err.Error(), "has a section 0.2.0 already") {
		t.Errorf("the same version again returns %v", err)
	}
}

// TestCommitsThatChangeTheSurfaceNeedAnEntry makes a repository, and adds one commit after the other.
func TestCommitsThatChangeTheSurfaceNeedAnEntry(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func(message string, files ...string) string {
		t.Helper()
		for _, file := range files {
			write(t, filepath.Join(dir, file), message)
		}
		git("add", ".")
		git("commit", "-q", "-m", message)
		return git("rev-parse", "HEAD")
	}
	check := func() error {
		t.Helper()
		commits, err := commitsSinceRelease(dir)
		if err != nil {
			t.Fatal(err)
		}
		return checkCommits(commits)
	}
	git("init", "-q")
	commit("Before fragments", "docs/cli.md")
	commit("Fragments begin", "changes/README.md")
	commit("Inner work", "cli/run.go", "docs/quick-start.md")
	commit("A flag", "docs/cli.md", "changes/52-flag.md")
	commit("A comment\n\nChangelog: none, the words only", "proto/switchyard/v1/node.proto")
	if err := check(); err != nil {
		t.Fatalf("these commits have entries: %v", err)
	}
	bad := commit("A field", "proto/switchyard/v1/node.proto", "changes/README.md")
	if err := check(); err == nil || !strings.Contains(err.Error(), bad[:12]+` "A field" changes proto/switchyard/v1/node.proto`) || strings.Contains(err.Error(), "A flag") {
		t.Fatalf("the error is %v", err)
	}
	commit("Its entry\n\nChangelog-For: "+bad[:12], "changes/53.md")
	if err := check(); err != nil {
		t.Fatalf("the entry came later: %v", err)
	}
	commit("Another field", "gateway/openapi/openapi.json")
	if check() == nil {
		t.Fatal("a commit without an entry passes")
	}
	git("rm", "-q", "changes/53.md")
	commit("A third field", "docs/cli.md")
	if err := check(); err == nil || !strings.Contains(err.Error(), `"A third field"`) {
		t.Fatalf("a removed fragment is no entry: %v", err)
	}
	git("tag", "v0.1.0")
	if err := check(); err != nil {
		t.Fatalf("it was released: %v", err)
	}
}
