package cli

import (
	"os"
	"os/exec"
	"testing"
)

func TestProcessWithoutAPathFindsTheShell(t *testing.T) {
	t.Setenv("PATH", "")
	setDefaultPath()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Error(err)
	}
	t.Setenv("PATH", "/opt/own")
	if setDefaultPath(); os.Getenv("PATH") != "/opt/own" {
		t.Errorf("PATH=%s", os.Getenv("PATH"))
	}
}
