package e2e

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/dev/processes"
)

// TestArtifactsComeToPeople lists and downloads what tasks and instances have left.
func TestArtifactsComeToPeople(t *testing.T) {
	t.Parallel()
	s := shared(t)
	id := s.Submit(t, `
name: hands
tasks:
  build:
    type: shell
    spec: { command: "mkdir -p dist/bin && echo tool > dist/bin/app && chmod +x dist/bin/app && ln -s bin/app dist/link && echo fine > report.txt" }
    artifacts: { out: [{ name: app, path: "dist/**" }, { name: report, path: report.txt }] }
  each:
    type: shell
    parallel: 2
    spec: { command: 'echo "$SWITCHYARD_INDEX" > number' }
    artifacts: { out: [{ name: number, path: number }] }
`)
	s.End(t, id)
	type item struct{ Task, Name, Size, Digest string }
	items := ask[list[item]](t, s.Gateway, "runs", "artifacts", "list", id).Items
	if len(items) != 4 || items[2].Task != "each[0]" || items[3].Task != "each[1]" || items[3].Name != "number" || items[0].Task != "build" || items[0].Name != "app" || items[0].Size != "5" || !strings.HasPrefix(items[0].Digest, "sha256:") || items[1].Name != "report" {
		t.Errorf("the run has left %v", items)
	}
	if items := ask[list[item]](t, s.Gateway, "runs", "artifacts", "list", id, "each[1]").Items; len(items) != 1 || items[0].Task != "each[1]" || items[0].Name != "number" {
		t.Errorf("the instance has left %v", items)
	}
	if items := ask[list[item]](t, s.Gateway, "runs", "artifacts", "list", id, "each").Items; len(items) != 2 || items[1].Task != "each[1]" {
		t.Errorf("the instances have left %v", items)
	}
	if text, _ := do(t, s.Gateway, 0, "runs", "get", id, "build"); !strings.Contains(text, "app, 5 B in 1 file (switchyard runs artifacts get "+id+" build app)") {
		t.Errorf("the task is shown as %s", text)
	}
	all, one, each := filepath.Join(t.TempDir(), "all"), filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "each")
	do(t, s.Gateway, 0, "runs", "artifacts", "get", id, "build", "--dir", all)
	do(t, s.Gateway, 0, "runs", "artifacts", "get", id, "each[1]", "number", "--dir", one)
	do(t, s.Gateway, 0, "runs", "artifacts", "get", id, "each", "--dir", each)
	do(t, s.Gateway, 0, "runs", "artifacts", "get", id, "each", "number", "--dir", each)
	read := func(name, want string) {
		t.Helper()
		if text, err := os.ReadFile(name); err != nil || strings.TrimSpace(string(text)) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	read(filepath.Join(all, "app/link"), "tool")
	read(filepath.Join(all, "report/report.txt"), "fine")
	if info, err := os.Stat(filepath.Join(all, "app/bin/app")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("the program: %v, %v", info, err)
	}
	read(filepath.Join(one, "number"), "1")
	for _, name := range []string{"number/0/number", "number/1/number", "0/number", "1/number"} {
		read(filepath.Join(each, name), filepath.Base(filepath.Dir(name)))
	}
	// What exists is not replaced unless this is asked for.
	report := filepath.Join(all, "report/report.txt")
	if err := os.WriteFile(report, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr := do(t, s.Gateway, 1, "runs", "artifacts", "get", id, "build", "report", "--dir", filepath.Dir(report)); !strings.Contains(stderr, "--force") {
		t.Errorf("stderr: %s", stderr)
	}
	read(report, "mine")
	do(t, s.Gateway, 0, "runs", "artifacts", "get", id, "build", "report", "--dir", filepath.Dir(report), "--force")
	read(report, "fine")
	stdout, _ := do(t, s.Gateway, 0, "runs", "artifacts", "get", id, "build", "report", "--dir", "-")
	archive := tar.NewReader(strings.NewReader(stdout))
	for _, want := range []string{"report/", "report/report.txt"} {
		if h, err := archive.Next(); err != nil || h.Name != want {
			t.Errorf("the archive has %v, want %s: %v", h, want, err)
		}
	}
	if text, err := io.ReadAll(archive); err != nil || string(text) != "fine\n" {
		t.Errorf("the archive has %q: %v", text, err)
	}
	if _, stderr := do(t, s.Gateway, 2, "runs", "artifacts", "get", id, "build", "none"); !strings.Contains(stderr, "artifacts list") {
		t.Errorf("stderr: %s", stderr)
	}
	do(t, s.Gateway, 2, "runs", "artifacts", "get", id, "build", "--dir", "-")
	if _, stderr := do(t, s.Gateway, 2, "runs", "artifacts", "get", id, "each", "number", "--dir", "-"); !strings.Contains(stderr, "each[0]") {
		t.Errorf("stderr: %s", stderr)
	}
}

// TestArtifactsBeyondTheQuotaFailTheirTask checks that a task whose artifacts exceed the quota of its run fails once, with the quota,
// the usage and the remedy in its error.
func TestArtifactsBeyondTheQuotaFailTheirTask(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--artifact-quota-gb", "1", "-o", "json", "--store", t.TempDir(), write(t, `
name: large
tasks:
  small: { type: shell, spec: { command: "head -c 200000000 /dev/zero > file" }, artifacts: { out: [{ name: file, path: file }] } }
  large:
    type: shell
    dependsOn: [small]
    spec: { command: "truncate -s 1G file" }
    artifacts: { out: [{ name: file, path: file }] }
    retry: { maxRetries: 3, backoffMs: 1 }
`))
	if code := p.Wait(); code != 1 {
		t.Fatalf("exit code %d", code)
	}
	run := processes.ParseRun(t, p.Stdout.String())
	large := run.Tasks["large"]
	if large.State != "failed" || large.Reason != "artifact_quota" || large.Attempt != 0 || !strings.Contains(large.Error, "is 1.00 GiB (--artifact-quota-gb of the gateway): those of this run have 0.19 GiB") {
		t.Errorf("the task is %s by %s in attempt %d: %s", large.State, large.Reason, large.Attempt, large.Error)
	}
	if small := run.Tasks["small"]; small.State != "completed" {
		t.Errorf("the task within the quota is %s: %s", small.State, small.Error)
	}
}
