package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/processes"
	"switchyard/dev/testneeds"
)

// TestReadmeAgents runs the commands of the README about agents. The model listens on a free port.
func TestReadmeAgents(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?s)\n## Agents\n.*?` + "```sh\n" + `(go run [^\n]*) -address 127.0.0.1:7411 &\nswitchyard (run \S+)\n` + "```").FindSubmatch(text)
	if block == nil {
		t.Fatal("the section does not start a model and run a definition")
	}
	address := fmt.Sprintf("127.0.0.1:%d", testneeds.FreePort(t))
	// The model that `go run` starts would outlive it.
	model := exec.Command("go", append(strings.Fields(string(block[1]))[1:], "-address", address)...)
	model.Dir, model.Env, model.SysProcAttr = repository, processes.CleanEnv(), &syscall.SysProcAttr{Setpgid: true}
	if err := model.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-model.Process.Pid, syscall.SIGKILL)
		_ = model.Wait() // it was killed
	})
	processes.Await(t, "the model listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	code, _, stderr := run(t, append(strings.Fields(string(block[2])), "--input", "provider=http://"+address)...)
	if code != 0 || !regexp.MustCompile(`run agents-\S+ completed`).MatchString(stderr) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
