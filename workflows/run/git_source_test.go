package run_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/secrets"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
)

// TestTasksStartWithOneCommit checks that all tasks of a run have the files of the commit that the first one had, with another one in
// the repository since.
func TestTasksStartWithOneCommit(t *testing.T) {
	t.Parallel()
	repository := t.TempDir()
	commit := func(text string) error {
		if err := os.WriteFile(filepath.Join(repository, "app", "text"), []byte(text), 0o644); err != nil {
			return err
		}
		for _, args := range []string{"init -q -b main", "add .", "commit -q -m " + text} {
			cmd := exec.Command("git", append([]string{"-C", repository, "-c", "user.name=a", "-c", "user.email=a@b"}, strings.Fields(args)...)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", args, err, out)
			}
		}
		return nil
	}
	if err := os.Mkdir(filepath.Join(repository, "app"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := commit("one"); err != nil {
		t.Fatal(err)
	}
	reads := func(then func() error) fake.Step {
		return fake.Step{Do: func(a executor.Attempt) error {
			text, err := os.ReadFile(filepath.Join(a.Dirs.Base, "text"))
			if err != nil || string(text) != "one" {
				return fmt.Errorf("it has read %q, %w", text, err)
			}
			return then()
		}}
	}
	none := func() error { return nil }
	c := workertest.Shared(t).Nodes(t, workertest.Script{
		"first": {reads(func() error { return commit("two") })}, "each[0]": {reads(none)}, "each[1]": {reads(none)},
	})
	for _, name := range []string{"a", "b"} {
		c.Start(name, func(cfg *workers.NodeConfig) {
			cfg.Secrets = &secrets.Resolver{Allow: secrets.AllowAll(), Getenv: func(string) (string, bool) { return "unused", true }}
		})
	}
	h := c.Submit(c.Input(fmt.Sprintf(`{name: commits, source: {git: "file://%s", ref: main, path: app, secret: "env:KEY"}, tasks: {
		first: {type: shell, spec: {command: x}, constraints: {targetNode: %s}, retry: {maxRetries: 0}},
		each: {type: shell, spec: {command: x}, parallel: 2, dependsOn: [first], constraints: {targetNode: %s}, retry: {maxRetries: 0}}}}`, repository, c.Name("a"), c.Name("b"))))
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"first": "completed", "each": "completed"})
	workertest.Replay(t, "git-source", limits.Run{}, h.History(""))
}
