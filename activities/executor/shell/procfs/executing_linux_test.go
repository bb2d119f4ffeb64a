package procfs

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// started starts a program in a session of its own and ends it with the test.
func started(t *testing.T, environ []string, argv ...string) int {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.SysProcAttr = environ, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

func TestProcessIsFoundWhileItExecutesAnotherProgram(t *testing.T) {
	script := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(script, []byte(`exec sh "$0"`), 0o600); err != nil {
		t.Fatal(err)
	}
	started(t, []string{Marker + "=" + script, "PATH=" + os.Getenv("PATH")}, "sh", script)
	for i := range 300 {
		if living, _ := NewSearch(script).Find(); len(living) != 1 {
			t.Fatalf("search %d finds %v, want the process", i, living)
		}
	}
}

func TestProcessWithoutAnEnvironmentIsNotWaitedFor(t *testing.T) {
	pid := started(t, []string{}, "sleep", "1000")
	for deadline := time.Now().Add(2 * time.Minute); isExecuting(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it counts as executing another program")
		}
	}
}
