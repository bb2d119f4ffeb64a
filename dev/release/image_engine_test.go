//go:build engines

package main

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// docker runs a command of Docker and returns its output.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestDockerRunsTheImage checks that Docker loads the image and runs the program in it, as the image's user.
func TestDockerRunsTheImage(t *testing.T) {
	r := made(t)
	loaded := docker(t, "load", "--input", filepath.Join(r.output, "switchyard_0.2.0-rc.1_oci.tar"))
	var images []string
	for line := range strings.Lines(loaded) {
		images = append(images, strings.TrimSpace(strings.TrimPrefix(line, "Loaded image: ")))
	}
	t.Cleanup(func() { docker(t, append([]string{"image", "rm"}, images...)...) })
	image := images[0]
	for _, name := range images {
		if strings.HasSuffix(name, "-"+runtime.GOARCH) {
			image = name
		}
	}
	if got := docker(t, "run", "--rm", "--network", "none", image, "version"); !strings.HasPrefix(got, "[version] 65532 ") {
		t.Errorf("the image prints %q", got)
	}
}
