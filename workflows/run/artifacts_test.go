package run_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchyard/activities/artifacts"
	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
)

// leaveFile returns a step that writes a file in the folder of its task, as large as its number of bytes.
func leaveFile(name string, bytes int, then fake.Step) fake.Step {
	then.Do = func(a executor.Attempt) error {
		file := filepath.Join(a.Dirs.Base, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, []byte(strings.Repeat("x", bytes)), 0o644)
	}
	return then
}

// TestFilesTravelBetweenTasks checks that a task finds on another node what the completed attempt of a task before it has left, and
// nothing of an attempt that failed.
func TestFilesTravelBetweenTasks(t *testing.T) {
	t.Parallel()
	var found []string
	c := workertest.Shared(t).Nodes(t, workertest.Script{
		"build": {leaveFile("dist/old", 1, fake.Exit(1)), leaveFile("dist/new", 300_000, fake.Step{})},
		"test": {{Do: func(a executor.Attempt) error {
			files, err := filepath.Glob(filepath.Join(a.Dirs.Base, "in/*"))
			for _, file := range files {
				info, statErr := os.Stat(file)
				if statErr != nil {
					return statErr
				}
				found = append(found, fmt.Sprintf("%s %d", info.Name(), info.Size()))
			}
			return err
		}}},
	})
	c.Start("a")
	c.Start("b")
	h := c.Submit(c.Input(fmt.Sprintf(`{name: files, tasks: {
		build: {type: shell, spec: {command: x}, constraints: {targetNode: %s}, retry: {maxRetries: 1, backoffMs: 1}, artifacts: {out: [
			{name: app, path: "dist/**"}, {name: report, path: report.txt, ifNone: ignore}]}},
		test: {type: shell, spec: {command: x}, dependsOn: [build], constraints: {targetNode: %s},
			condition: "parent.build.artifacts.app.files == 1 && parent.build.artifacts.app.size == 300000 && parent.build.artifacts.report.size == 0",
			env: {DIGEST: "${{ parent.build.artifacts.app.digest }}"}, artifacts: {in: [{from: build.app, path: in}, {from: build.report, path: report}]}}}}`, c.Name("a"), c.Name("b"))))
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"build": "completed", "test": "completed"})
	if !slices.Equal(found, []string{"new 300000"}) {
		t.Errorf("found %v", found)
	}
	app := v1.ArtifactNamed(run.GetTasks()["build"].GetResult().GetArtifacts(), "app")
	if !strings.HasPrefix(app.GetDigest(), "sha256:") {
		t.Errorf("the artifact is %v", app)
	}
	for _, call := range c.Fake.Calls() {
		if digest := call.Attempt.Env["DIGEST"]; call.Task == "test" && digest != app.GetDigest() {
			t.Errorf("the environment has the digest %s", digest)
		}
	}
	workertest.Replay(t, "artifacts", limits.Run{}, h.History(""))
}

// TestAttemptWithoutItsFilesFails checks that a task fails that leaves nothing for an artifact or what cannot be in one, or whose artifact
// does not exist, and that it is not retried.
func TestAttemptWithoutItsFilesFails(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"fails": {fake.Exit(1)}, "leads": {{Do: func(a executor.Attempt) error {
		return os.Symlink("/etc/passwd", filepath.Join(a.Dirs.Base, "app"))
	}}}})
	c.Start("a")
	run := c.Submit(c.Input(`{name: files, tasks: {
		none: {type: shell, spec: {command: x}, retry: {maxRetries: 3, backoffMs: 1}, artifacts: {out: [{name: app, path: "dist/**"}]}},
		leads: {type: shell, spec: {command: x}, retry: {maxRetries: 3, backoffMs: 1}, artifacts: {out: [{name: app, path: app*}]}},
		fails: {type: shell, spec: {command: x}, retry: {maxRetries: 0}, artifacts: {out: [{name: app, path: a}]}},
		after: {type: shell, spec: {command: x}, dependsOn: [fails], onFailure: run, artifacts: {in: [{from: fails.app}]}}}}`)).Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"none": "failed", "leads": "failed", "fails": "failed", "after": "failed"})
	for name, want := range map[string]string{
		"none":  "bad_spec: artifact app: nothing matches dist/**",
		"leads": "bad_spec: artifact app: app is a link that leads out of the artifact, to /etc/passwd (not a valid artifact)",
		"after": "bad_spec: artifact fails.app: task fails is failed: there is no such artifact",
	} {
		if task := run.GetTasks()[name]; task.GetReason()+": "+task.GetError() != want {
			t.Errorf("%s: %s: %s", name, task.GetReason(), task.GetError())
		}
	}
	if n := c.Calls(); n["none"] != 1 || n["leads"] != 1 || n["after"] != 0 {
		t.Errorf("the tasks ran %v times", n)
	}
}

// TestFilesOfInstancesTravel checks that a task, and each instance of another one, finds the files of every completed instance before
// it in a folder of its own, whoever carries the instances and in whatever batches, also after a retry of the run.
func TestFilesOfInstancesTravel(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]limits.Run{"whole": {}, "parts": inPartitions} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			found, broken := map[string]int{}, true
			// leave writes the number of an instance to a file, unless the instance is number 3 and broken.
			leave := func(a executor.Attempt) error {
				number := a.Env["SWITCHYARD_INDEX"]
				if mu.Lock(); number == "3" && broken {
					number = ""
				}
				mu.Unlock()
				if number == "" {
					return nil
				}
				return os.WriteFile(filepath.Join(a.Dirs.Base, "number"), []byte(number), 0o600)
			}
			// find counts what an attempt finds, by task.
			find := func(a executor.Attempt) error {
				files, err := filepath.Glob(filepath.Join(a.Dirs.Base, "*/*/*"))
				all := a.Env["SWITCHYARD_TASK"] + ":"
				for _, file := range files {
					text, readErr := os.ReadFile(file)
					if readErr != nil {
						return readErr
					}
					place, _ := filepath.Rel(a.Dirs.Base, file)
					all += fmt.Sprintf(" %s=%s", strings.TrimSuffix(place, "/number"), text)
				}
				mu.Lock()
				defer mu.Unlock()
				found[all]++
				return err
			}
			both := func(a executor.Attempt) error { return errors.Join(find(a), leave(a)) }
			c := workertest.SharedWithin(t, l).Nodes(t, workertest.Script{
				"seed": {leaveFile("d/seed/number", 1, fake.Step{})}, "each": {{Do: both}}, "rows": {{Do: both}}, "after": {{Do: find}},
			})
			c.Start("a")
			c.Start("b")
			in := c.Input(`{name: files, failurePolicy: continue, tasks: {
				seed: {type: shell, spec: {command: x}, artifacts: {out: [{name: d, path: d}]}},
				each: {type: shell, spec: {command: x}, parallel: 7, dependsOn: [seed], retry: {maxRetries: 0},
					artifacts: {in: [{from: seed.d, path: in}], out: [{name: part, path: number}, {name: log, path: log, ifNone: ignore}]}},
				rows: {type: shell, spec: {command: x}, parallel: 7, batch: 3, dependsOn: [each], onFailure: run, retry: {maxRetries: 0},
					artifacts: {in: [{from: each.part, path: each}], out: [{name: part, path: number}]}},
				after: {type: shell, spec: {command: x}, dependsOn: [rows], onFailure: run, retry: {maxRetries: 0},
					artifacts: {in: [{from: each.part, path: each}, {from: rows.part, path: rows}]}}}}`)
			h := c.Submit(in)
			check := func(want map[string]int) {
				t.Helper()
				mu.Lock()
				defer mu.Unlock()
				if diff := cmp.Diff(want, found); diff != "" {
					t.Errorf("found (-want +got):\n%s", diff)
				}
				clear(found)
				broken = false
			}
			workertest.CheckRun(t, h.Wait(), "failed", map[string]string{"each": "failed", "rows": "failed", "after": "completed"})
			const each, rows = " each/0=0 each/1=1 each/2=2 each/4=4 each/5=5 each/6=6", " rows/0=0 rows/1=1 rows/2=2 rows/4=4 rows/5=5 rows/6=6"
			check(map[string]int{"each: in/seed=x": 7, "rows:" + each: 7, "after:" + each + rows: 1})
			h = h.Rerun(in, 1, &historyv1.Rerun{Failed: true})
			workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"each": "completed", "rows": "completed", "after": "completed"})
			again := h.Rerun(in, 2, &historyv1.Rerun{From: []string{"after"}})
			workertest.CheckRun(t, again.Wait(), "completed", map[string]string{"each": "completed", "rows": "completed", "after": "completed"})
			const all = " each/0=0 each/1=1 each/2=2 each/3=3 each/4=4 each/5=5 each/6=6"
			check(map[string]int{"each: in/seed=x": 1, "rows:" + all: 1, "after:" + all + strings.ReplaceAll(all, "each", "rows"): 1})
			if name == "parts" {
				workertest.Replay(t, "artifacts-parts", l, h.History(""))
				workertest.Replay(t, "artifacts-part", l, h.Partition(1, "rows", 0).History(""))
			}
		})
	}
}

// TestCachedResultBringsItsFiles checks that a run that takes a result from the cache has its artifacts, and that the task runs again
// if they were removed.
func TestCachedResultBringsItsFiles(t *testing.T) {
	t.Parallel()
	c := workertest.Own(t, workers.ControlConfig{}).Nodes(t, workertest.Script{"build": {leaveFile("app", 300_000, fake.Step{})}, "test": {{Do: func(a executor.Attempt) error {
		_, err := os.Stat(filepath.Join(a.Dirs.Base, "app"))
		return err
	}}}})
	c.Start("a")
	const document = `{name: files, tasks: {
		build: {type: shell, spec: {command: x}, cache: {key: "'v'"}, artifacts: {out: [{name: app, path: app}]}},
		test: {type: shell, spec: {command: x}, dependsOn: [build], artifacts: {in: [{from: build.app}]}}}}`
	var runs []string
	for i, builds := range []int{1, 1, 1, 2} {
		if i > 1 { // a run that has taken the artifacts is removed, and then the one that left them
			if err := c.Store.DeleteRun(t.Context(), runs[3-i]); err != nil {
				t.Fatal(err)
			}
		}
		run := c.Submit(c.Input(document))
		workertest.CheckRun(t, run.Wait(), "completed", map[string]string{"build": "completed", "test": "completed"})
		runs = append(runs, run.ID)
		if n := c.Calls()["build"]; n != builds {
			t.Errorf("after %d runs, build ran %d times, want %d", i+1, n, builds)
		}
	}
}

// TestExpiredArtifactsAreNotUsed checks that a task finds artifacts in their run although they have expired, that a later run takes none of them from
// the cache, and that a rerun whose task needs one fails at once.
func TestExpiredArtifactsAreNotUsed(t *testing.T) {
	t.Parallel()
	c := workertest.Own(t, workers.ControlConfig{}).Nodes(t, workertest.Script{"build": {leaveFile("app", 300_000, fake.Step{})}, "test": {{}}})
	c.Start("a")
	in := c.Input(`{name: files, tasks: {
		build: {type: shell, spec: {command: x}, cache: {key: "'v'"}, artifacts: {keep: 1ns, out: [{name: app, path: app}]}},
		test: {type: shell, spec: {command: x}, dependsOn: [build], artifacts: {in: [{from: build.app}]}, retry: {maxRetries: 3}}}}`)
	var h *workertest.Handle
	for range 2 {
		h = c.Submit(in)
		workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"build": "completed", "test": "completed"})
	}
	if n := c.Calls()["build"]; n != 2 {
		t.Errorf("build ran %d times", n)
	}
	workertest.Replay(t, "artifacts-keep", limits.Run{}, h.History(""))
	if removed, err := c.Store.SweepChunks(t.Context(), func(ctx context.Context, yield func([]byte)) error {
		return artifacts.Used(ctx, c.Store, time.Now(), func(context.Context, string) (bool, error) { return false, nil }, yield)
	}); err != nil || removed == 0 {
		t.Fatal(removed, err)
	}
	task := h.Rerun(in, 1, &historyv1.Rerun{From: []string{"test"}}).Wait().GetTasks()["test"]
	if task.GetReason() != v1.ReasonBadSpec || len(task.GetAttempts()) != 2 || !strings.Contains(task.GetError(), "artifact build.app: its files expired at ") {
		t.Errorf("the task is %v", task)
	}
}

// TestTimeoutCoversTheUpload checks that a task ends with its time limit although its artifacts cannot be stored.
func TestTimeoutCoversTheUpload(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{})
	bringBack := make(chan func(), 1)
	then := leaveFile("app", 300_000, fake.Step{})
	leave := then.Do
	then.Do = func(a executor.Attempt) error {
		bringBack <- takeStoreAway(t, y)
		return leave(a)
	}
	c := y.Nodes(t, workertest.Script{"build": {then}})
	c.Start("a")
	h := c.Submit(c.Input(`{name: files, tasks: {build: {type: shell, spec: {command: x}, timeout: 2s, retry: {maxRetries: 0}, artifacts: {out: [{name: app, path: app}]}}}}`))
	back := <-bringBack
	h.AwaitTask("build", func(t *v1.Task) bool { return t.GetState() == v1.TaskFailed })
	back()
	if task := h.Wait().GetTasks()["build"]; task.GetReason() != v1.ReasonTimeout || !strings.Contains(task.GetError(), "artifacts were being stored") {
		t.Errorf("%s: %s", task.GetReason(), task.GetError())
	}
}
