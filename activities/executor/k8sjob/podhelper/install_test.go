package podhelper

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestInstalledProgramRunsAndIsReplaced(t *testing.T) {
	dir := t.TempDir()
	installed := filepath.Join(dir, BinaryName)
	install := func(program string) {
		t.Helper()
		if out, err := exec.Command(program, Command, "install", dir).CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%v: %s", err, out)
		}
		info, err := os.Stat(installed)
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o755 {
			t.Fatalf("%v, %v", info, err)
		}
	}
	install(os.Args[0])
	install(installed) // the helper runs while it is replaced
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestInstallExplainsWhyItFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	out, err := exec.Command(os.Args[0], Command, "install", dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "install switchyard in "+dir+": ") {
		t.Errorf("%v: %s", err, out)
	}
	full := t.TempDir()
	if err := os.Mkdir(filepath.Join(full, BinaryName), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Install(full); err == nil {
		t.Error("a folder was replaced")
	}
	if entries, err := os.ReadDir(full); err != nil || len(entries) != 1 {
		t.Errorf("a temporary file is left: %v, %v", entries, err)
	}
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	for _, args := range []string{"", "install", "install a b", "run", "run --", "run true", "other"} {
		cmd := exec.Command(os.Args[0], append([]string{Command}, strings.Fields(args)...)...)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != ExitUsage || !strings.Contains(string(out), "usage: switchyard pod-helper") {
			t.Errorf("%q: exit code %d, %s", args, cmd.ProcessState.ExitCode(), out)
		}
	}
}
