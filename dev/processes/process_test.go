package processes

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// starterVariable makes this test program start a process, print its ID and wait.
const starterVariable = "PROCESSES_TEST_STARTER"

func TestMain(m *testing.M) {
	if folder := os.Getenv(starterVariable); folder != "" {
		p, err := Start(exec.Command("sleep", "1000"), folder, "sleep")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("PID", p.Cmd.Process.Pid)
		select {}
	}
	os.Exit(m.Run())
}

func TestProcessEndsWithItsStarter(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only the kernel of Linux ends it")
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{starterVariable + "=" + t.TempDir()}
	starter := StartForTest(t, cmd)
	pid := starter.Field("PID")
	starter.Signal(syscall.SIGKILL)
	Await(t, "the process has ended", func() bool {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

func TestLinesAndExitCodeAreRead(t *testing.T) {
	t.Parallel()
	p := StartForTest(t, exec.Command("sh", "-c", "echo unlike; echo like this; echo aside >&2; printf half; exit 3"))
	if got := p.Field("like"); got != "this" {
		t.Errorf("the field is %q", got)
	}
	if got := p.Line(p.Stderr, "side"); got != "aside" {
		t.Errorf("the line is %q", got)
	}
	if code := p.Wait(); code != 3 {
		t.Errorf("the exit code is %d", code)
	}
	if _, err := p.Process.Field(t.Context(), "half"); err == nil || !strings.Contains(err.Error(), "exit code 3") || !strings.Contains(err.Error(), "aside") {
		t.Errorf("the wait for an incomplete line returns %v", err)
	}
}
