package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/testneeds"
)

// TestReadmeAgents runs the commands of the README about agents. The model listens on a free port.
func TestReadmeAgents(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)\n## Agents\n.*?```sh\n(.*?)```").FindSubmatch(text)
	const address, definition = "127.0.0.1:7411", "dev/examples/agents.yaml"
	if block == nil || !strings.Contains(string(block[1]), address+" &\n") || !strings.Contains(string(block[1]), "switchyard run "+definition+"\n") {
		t.Fatalf("the section starts no model at %s, or does not run %s", address, definition)
	}
	port := testneeds.FreePort(t)
	free := fmt.Sprintf("127.0.0.1:%d", port)
	// On a busy machine `go run` may need longer than the agents wait for their model.
	listens := fmt.Sprintf("for _ in {1..3000}; do (: <>/dev/tcp/127.0.0.1/%d) 2>/dev/null && break; sleep 0.1; done\n", port)
	commands := strings.NewReplacer(
		address+" &\n", free+" &\n"+listens, definition, definition+" --input provider=http://"+free,
	).Replace(string(block[1]))
	// The shell kills its process group, because the model that `go run` starts would outlive it.
	shell := exec.Command(tool(t, "bash"), "-euc", "switchyard() { "+binary+` "$@"; }; trap 'trap "" TERM; kill 0' EXIT`+"\n"+commands)
	shell.Dir, shell.Env, shell.SysProcAttr = repository, cleanEnv(), &syscall.SysProcAttr{Setpgid: true}
	out, err := shell.CombinedOutput()
	if err != nil || !regexp.MustCompile(`run agents-\S+ completed`).Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestGuideOfAgents validates the first definition of the guide. Running it would need a key.
func TestGuideOfAgents(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "activities/executor/subagent/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	definition := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	if definition == nil {
		t.Fatal("no definition")
	}
	if code, stdout, stderr := run(t, "validate", write(t, string(definition[1]))); code != 0 {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}
