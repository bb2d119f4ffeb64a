package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"switchyard/dev/processes"
)

// TestReadme checks the README's promises: its first two commands are in its first 20 lines, its definition runs
// unchanged in any folder, and every command that it names exists.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	top := strings.Join(strings.SplitN(string(text), "\n", 21)[:20], "\n")
	first, second := strings.Index(top, "go run . run dev/examples/build-and-deploy.yaml"), strings.Index(top, "go test ./...")
	if first < 0 || second < first {
		t.Error("the first 20 lines do not hold the two commands in order")
	}
	definition := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	if definition == nil {
		t.Fatal("no definition")
	}
	code, stdout, stderr := run(t, "run", write(t, string(definition[1])), "-o", "json")
	nightly := processes.ParseRun(t, stdout)
	if code != 0 || nightly.State != "completed" {
		t.Fatalf("the definition ends with exit code %d: %s", code, stderr)
	}
	for task, want := range map[string]string{"test": "completed", "build": "completed", "deploy": "completed", "notify-failure": "skipped"} {
		if nightly.Tasks[task].State != want {
			t.Errorf("%s is %s, want %s", task, nightly.Tasks[task].State, want)
		}
	}
	if text := nightly.Tasks["deploy"].Result.Stdout; !strings.HasPrefix(text, "version 1.") {
		t.Errorf("deploy has printed %q", text)
	}
	_, help, _ := run(t, "--help")
	for _, command := range regexp.MustCompile("`switchyard ([a-z]+)").FindAllSubmatch(text, -1) {
		if !regexp.MustCompile(`(?m)^  ` + string(command[1]) + ` `).MatchString(help) {
			t.Errorf("the help lacks switchyard %s:\n%s", command[1], help)
		}
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
