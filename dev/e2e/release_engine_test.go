//go:build engines

package e2e

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/testneeds"
)

// TestLongRelease builds the release for this machine's platform and its container image.
func TestLongRelease(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	base, dist := enginetest.Image(t), t.TempDir()
	if _, err := exec.LookPath("docker"); err != nil {
		testneeds.Missing(t, "an image is built with the program docker: %v", err)
	}
	must := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = repository
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		return string(out)
	}
	const released = "0.0.1-test"
	must("dev/release.sh", released, "--output", dist, "linux/"+runtime.GOARCH)

	name := "switchyard_" + released + "_linux_" + runtime.GOARCH
	check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = dist
	if out, err := check.CombinedOutput(); err != nil || !strings.Contains(string(out), name+".tar.gz: OK\n") {
		t.Errorf("SHA256SUMS: %v\n%s", err, out)
	}
	must("tar", "-C", dist, "-xf", filepath.Join(dist, name+".tar.gz"))
	program := filepath.Join(dist, name, "switchyard")
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if libraries, err := file.ImportedLibraries(); err != nil || len(libraries) > 0 || file.Section(".symtab") != nil {
		t.Errorf("the binary needs the libraries %v (%v), or is not stripped", libraries, err)
	}
	version := must(program, "version")
	if !strings.Contains(version, " "+released+"\n") || strings.Contains(version, "unknown") {
		t.Errorf("version prints %s", version)
	}

	image := "switchyard-test-release"
	must("docker", "build", "-f", "dev/deploy/Dockerfile", "--build-arg", "BASE="+base, "--build-arg", "VERSION="+released, "--build-arg", "TARGETARCH="+runtime.GOARCH, "-t", image, dist)
	t.Cleanup(func() { must("docker", "image", "rm", image) })
	if got := must("docker", "run", "--rm", image, "version"); got != version {
		t.Errorf("in the image, version prints %s", got)
	}
	if got := must("docker", "run", "--rm", "--entrypoint", "/switchyard", image, "pod-helper", "run", "--", "/usr/local/bin/switchyard", "version"); got != version {
		t.Errorf("by the helper of pods, version prints %s", got)
	}
}
