//go:build engines

package e2e

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"switchyard/dev/testneeds"
)

// TestLongRelease builds the release for this machine's platform, checks it as a person does who has downloaded it, and runs a
// workflow in its image.
func TestLongRelease(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	for _, need := range []string{"docker", "minisign"} {
		if _, err := exec.LookPath(need); err != nil {
			testneeds.Missing(t, "releases are checked with the program %s: %v", need, err)
		}
	}
	keys, dist := t.TempDir(), t.TempDir()
	try := func(name string, args ...string) (string, error) {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = repository, append(os.Environ(), "SWITCHYARD_RELEASE_KEY="+filepath.Join(keys, "secret"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(name string, args ...string) string {
		t.Helper()
		out, err := try(name, args...)
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return out
	}
	const released = "0.0.1-test"
	public := filepath.Join(keys, "public")
	must("minisign", "-G", "-W", "-p", public, "-s", filepath.Join(keys, "secret"))
	must("dev/release.sh", released, "--output", dist, "--public-key", public, "linux/"+runtime.GOARCH)

	name := "switchyard_" + released + "_linux_" + runtime.GOARCH
	if out := must("minisign", "-V", "-p", public, "-m", filepath.Join(dist, "SHA256SUMS")); !strings.Contains(out, "switchyard "+released) {
		t.Errorf("minisign prints %s", out)
	}
	if out := must("sh", "-c", `cd "$1" && sha256sum --check --strict SHA256SUMS`, "sh", dist); !strings.Contains(out, name+".tar.gz: OK\n") {
		t.Errorf("SHA256SUMS: %s", out)
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

	image := strings.TrimSpace(strings.TrimPrefix(must("docker", "load", "--quiet", "--input", filepath.Join(dist, "switchyard_"+released+"_oci.tar")), "Loaded image: "))
	t.Cleanup(func() { must("docker", "image", "rm", image) })
	if got := must("docker", "run", "--rm", image, "version"); got != version {
		t.Errorf("in the image, version prints %s", got)
	}
	// The image has no shell.
	definition := filepath.Join(dist, "definition.yaml")
	if err := os.WriteFile(definition, []byte("name: image\ntasks: { a: { type: shell, spec: { command: [switchyard, version] } } }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := must("docker", "run", "--rm", "--volume", definition+":/definition.yaml:ro", image, "run", "/definition.yaml"); !strings.Contains(got, "(1 completed)") {
		t.Errorf("a workflow in the image prints %s", got)
	}
}
