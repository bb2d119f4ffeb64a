package run_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
)

// note returns a step that adds a line to the file "steps" in the folder of its task, and records the folder.
func note(line string, mu *sync.Mutex, folders map[string]bool, then fake.Step) fake.Step {
	then.Do = func(a executor.Attempt) error {
		mu.Lock()
		defer mu.Unlock()
		folders[a.Dirs.Base] = true
		f, err := os.OpenFile(filepath.Join(a.Dirs.Base, "steps"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(f, line)
		return errors.Join(err, f.Close())
	}
	return then
}

// TestTasksShareAFolder checks that tasks with a workspace run one at a time on one node in one folder, in which a retry and
// artifacts find what the others have left, that a retry of the run begins with a new folder, and that nothing of it stays.
func TestTasksShareAFolder(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	folders := map[string]bool{}
	step := func(line string, then fake.Step) fake.Step { return note(line, &mu, folders, then) }
	c := workertest.Shared(t).Nodes(t, workertest.Script{
		"checkout": {step("checkout", fake.Step{})},
		"lint":     {step("lint", fake.Exit(1)), step("lint again", fake.Step{})},
		"pack":     {step("pack", fake.Step{})},
		"late":     {fake.Exit(1), step("late", fake.Step{})},
	})
	a := c.Start("a")
	b := c.Start("b")
	in := c.Input(`{name: space, tasks: {
		checkout: {type: shell, spec: {command: x}, workspace: build},
		lint: {type: shell, spec: {command: x}, dependsOn: [checkout], workspace: build, retry: {maxRetries: 1, backoffMs: 1}},
		pack: {type: shell, spec: {command: x}, dependsOn: [lint], workspace: build, artifacts: {out: [{name: steps, path: steps}]}},
		late: {type: shell, spec: {command: x}, dependsOn: [pack], workspace: build, retry: {maxRetries: 0}}}}`)
	h := c.Submit(in)
	run := h.Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"checkout": "completed", "lint": "completed", "pack": "completed", "late": "failed"})
	for name, task := range run.GetTasks() {
		if task.GetNode() != run.GetTasks()["checkout"].GetNode() {
			t.Errorf("%s ran on %s, checkout on %s", name, task.GetNode(), run.GetTasks()["checkout"].GetNode())
		}
	}
	lines := "checkout\nlint\nlint again\npack\n"
	if size := run.GetTasks()["pack"].GetResult().GetArtifacts()[0].GetSize(); size != int64(len(lines)) {
		t.Errorf("the artifact has %d bytes, want %d", size, len(lines))
	}
	if len(folders) != 1 {
		t.Errorf("the tasks ran in %v", folders)
	}
	workertest.Replay(t, "workspaces", limits.Run{}, h.History(""))

	run = h.Rerun(in, 1, &historyv1.Rerun{Failed: true}).Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"checkout": "completed", "late": "completed"})
	if n := c.Calls()["checkout"]; n != 2 || len(folders) != 2 {
		t.Errorf("after the retry of the run, checkout ran %d times, in %v", n, folders)
	}
	a.Stop()
	b.Stop()
	for folder := range folders {
		if _, err := os.Stat(filepath.Dir(folder)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s stays: %v", folder, err)
		}
	}
}

// TestLostWorkspaceFails checks that a task fails whose workspace is on a node that has left, or whose folder is gone, and that a retry
// of the run then runs all its tasks elsewhere.
func TestLostWorkspaceFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lose func(t *testing.T, c *workertest.Nodes, first *workers.Node, folder string)
		want string
	}{
		"node": {func(t *testing.T, _ *workertest.Nodes, first *workers.Node, folder string) {
			first.Stop()
			if _, err := os.Stat(folder); err != nil {
				t.Errorf("while the run is open, its folder is gone: %v", err)
			}
		}, "workspace build is on node %s, which task checkout has used: "},
		"folder": {func(t *testing.T, _ *workertest.Nodes, _ *workers.Node, folder string) {
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
		}, "node %s does not have workspace build, which tasks of the run have used; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			folders := map[string]bool{}
			c := workertest.Shared(t).Nodes(t, workertest.Script{
				"checkout": {note("checkout", &mu, folders, fake.Step{})},
				"between":  {{Block: true}, {}},
			})
			first := c.Start("first")
			in := c.Input(`{name: space, tasks: {
				checkout: {type: shell, spec: {command: x}, workspace: build},
				between: {type: shell, spec: {command: x}, dependsOn: [checkout], constraints: {targetNode: ` + c.Name("second") + `}},
				build: {type: shell, spec: {command: x}, dependsOn: [between], workspace: build}}}`)
			in.Options = &v1.RunOptions{PlacementTimeout: durationpb.New(2 * time.Second)}
			h := c.Submit(in)
			h.AwaitTask("checkout", func(t *v1.Task) bool { return t.GetState() == v1.TaskCompleted })
			c.Start("second")
			c.AwaitRunning("between")
			for folder := range folders {
				test.lose(t, c, first, folder)
			}
			c.Fake.Release("between")
			run := h.Wait()
			workertest.CheckRun(t, run, "failed", map[string]string{"checkout": "completed", "build": "failed"})
			if task := run.GetTasks()["build"]; task.GetReason() != v1.ReasonWorkspace || !strings.HasPrefix(task.GetError(), fmt.Sprintf(test.want, c.Name("first"))) || !strings.Contains(task.GetError(), "runs retry") {
				t.Errorf("%s: %s", task.GetReason(), task.GetError())
			}
			run = h.Rerun(in, 1, &historyv1.Rerun{Failed: true}).Wait()
			workertest.CheckRun(t, run, "completed", map[string]string{"checkout": "completed", "build": "completed"})
		})
	}
}
